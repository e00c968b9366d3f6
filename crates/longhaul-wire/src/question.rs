//! Questions on the wire: the request of each kind, what it requires of the client, and whether an answer fits.

use std::borrow::Cow;
use std::collections::HashSet;

use longhaul_task::{Json, Question, QuestionKind};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::jsonrpc::quote;
use crate::schema::Schema;
use crate::text;

/// The method of the request that carries such a question.
pub const fn method(kind: QuestionKind) -> &'static str {
    match kind {
        QuestionKind::Elicitation => "elicitation/create",
        QuestionKind::Sampling => "sampling/createMessage",
        QuestionKind::Roots => "roots/list",
    }
}

/// Why an answer does not fit its question.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("The answer{} does not fit: {why}", key.as_ref().map(|key| format!(" to `{key}`")).unwrap_or_default())]
pub struct WrongAnswer {
    /// `None` where there is only one question.
    key: Option<String>,
    why: String,
}

impl WrongAnswer {
    /// What is wrong, without the name of the question.
    pub fn why(&self) -> &str {
        &self.why
    }
}

/// Why a question is not valid for any client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the question is not valid: {0}")]
pub struct WrongQuestion(String);

/// Whether an answer fits an open question of a task.
pub fn check(question: &Question, answer: &RawValue) -> Result<(), WrongAnswer> {
    check_parts(Some(question.key.as_str()), question.kind, &question.params, answer)
}

/// Whether an answer fits a question that does not belong to a task, as in a call of several rounds.
pub fn check_parts(key: Option<&str>, kind: QuestionKind, params: &Json, answer: &RawValue) -> Result<(), WrongAnswer> {
    let fits = match kind {
        QuestionKind::Elicitation => check_elicitation(params, answer),
        QuestionKind::Sampling => check_sampling(answer),
        QuestionKind::Roots => check_roots(answer),
    };
    fits.map_err(|why| WrongAnswer { key: key.map(str::to_owned), why })
}

/// Whether a question is valid. Check one that was not made from a type before it is asked, so that its author gets the error
/// and not the client.
pub fn check_question(kind: QuestionKind, params: &Json) -> Result<(), WrongQuestion> {
    let params: Value = serde_json::from_str(params.as_str()).map_err(|error| WrongQuestion(error.to_string()))?;
    let wrong = |why: &str| Err(WrongQuestion(why.to_owned()));
    match kind {
        _ if !params.is_object() => wrong("its parameters must be an object"),
        QuestionKind::Elicitation if !params["message"].is_string() => wrong("an elicitation needs a `message`"),
        QuestionKind::Elicitation => match params.get("mode").map_or(Some("form"), Value::as_str) {
            Some("form") if params["requestedSchema"]["type"] != "object" => {
                wrong("a form needs a `requestedSchema` of type object")
            }
            Some("form") => check_form(&params["requestedSchema"]).map_err(WrongQuestion),
            Some("url") if !params["url"].is_string() => wrong("an elicitation by URL needs a `url`"),
            Some("url") => Ok(()),
            _ => wrong("the `mode` of an elicitation is `form` or `url`"),
        },
        QuestionKind::Sampling if !params["messages"].is_array() => wrong("sampling needs `messages`"),
        QuestionKind::Sampling if !params["maxTokens"].is_u64() => wrong("sampling needs `maxTokens`"),
        QuestionKind::Sampling | QuestionKind::Roots => Ok(()),
    }
}

/// Whether every field of a form is of a kind that the protocol allows. Clients refuse or cannot show others.
fn check_form(schema: &Value) -> Result<(), String> {
    let fields = schema.get("properties").map(|fields| fields.as_object().ok_or("`properties` must be an object"));
    for (name, field) in fields.transpose()?.into_iter().flatten() {
        let is_allowed = match field["type"].as_str() {
            Some("string" | "number" | "integer" | "boolean") => true,
            Some("array") => field["items"]["enum"].is_array() || field["items"]["anyOf"].is_array(),
            _ => false,
        };
        if !is_allowed {
            let name = quote(name);
            return Err(format!(
                "the field `{name}` must be a string, number, integer or boolean, or an array of choices (`items` with `enum`)"
            ));
        }
    }
    Schema::of(schema.clone()).map(drop)
}

/// The sentence in which an elicitation asks.
pub(crate) fn message(params: &Json) -> Option<String> {
    raw(params).and_then(|params| text::member(params, "message")).and_then(text::string).map(Into::into)
}

/// Whether an elicitation sends the user to a URL instead of asking in a form.
pub(crate) fn is_by_url(params: &Json) -> bool {
    raw(params).and_then(|params| text::member(params, "mode")).and_then(text::string).as_deref() == Some("url")
}

/// Whether sampling offers tools to the model or sets its choice of tools. Both need a client that knows tools.
pub(crate) fn offers_tools(params: &Json) -> bool {
    let has = |name| raw(params).is_some_and(|params| text::member(params, name).is_some());
    has("tools") || has("toolChoice")
}

fn raw(json: &Json) -> Option<&RawValue> {
    serde_json::from_str(json.as_str()).ok()
}

fn check_elicitation(params: &Json, answer: &RawValue) -> Result<(), String> {
    check_object(answer)?;
    match string_member(answer, "action").as_deref() {
        Some("decline" | "cancel") => return Ok(()),
        Some("accept") if is_by_url(params) => return Ok(()),
        Some("accept") => {}
        _ => return Err("`action` must be `accept`, `decline` or `cancel`".to_owned()),
    }
    let Some(schema) = raw(params).and_then(|params| text::member(params, "requestedSchema")) else {
        return Ok(());
    };
    let schema = Schema::compile(&Json::from_text(schema.get()))?;
    let content = match text::member(answer, "content").filter(|content| content.get() != "null") {
        Some(content) if !text::is_object(content) => return Err("`content` must be an object".to_owned()),
        Some(content) => content,
        // A form without required fields may come back with nothing filled in.
        None => text::empty_object(),
    };
    match schema.faults(content) {
        faults if faults.is_empty() => Ok(()),
        faults => Err(faults.join("; ")),
    }
}

fn check_sampling(answer: &RawValue) -> Result<(), String> {
    check_object(answer)?;
    if !matches!(string_member(answer, "role").as_deref(), Some("user" | "assistant")) {
        return Err("`role` must be `user` or `assistant`".to_owned());
    }
    if string_member(answer, "model").is_none() {
        return Err("`model` must be a string".to_owned());
    }
    match text::member(answer, "content").and_then(|content| content.get().bytes().next()) {
        Some(b'{' | b'[') => Ok(()),
        _ => Err("`content` must be a block or an array of blocks".to_owned()),
    }
}

fn check_roots(answer: &RawValue) -> Result<(), String> {
    check_object(answer)?;
    let roots =
        text::member(answer, "roots").and_then(|roots| serde_json::from_str::<Vec<&RawValue>>(roots.get()).ok());
    let is_root = |root: &&RawValue| check_object(root).is_ok() && string_member(root, "uri").is_some();
    match roots {
        Some(roots) if roots.iter().all(is_root) => Ok(()),
        _ => Err("`roots` must be an array of objects, each with a `uri`".to_owned()),
    }
}

/// Readers of the answer do not agree on the value of a name that is there twice.
fn check_object(answer: &RawValue) -> Result<(), String> {
    if !text::is_object(answer) {
        return Err("it must be an object".to_owned());
    }
    let (mut names, mut repeated) = (HashSet::new(), None);
    text::each_member(answer, |name, _| {
        if !names.insert(name.clone()) {
            repeated = Some(name);
        }
    });
    match repeated {
        Some(name) => Err(format!("it has `{}` twice", quote(&name))),
        None => Ok(()),
    }
}

fn string_member<'a>(object: &'a RawValue, name: &str) -> Option<Cow<'a, str>> {
    text::member(object, name).and_then(text::string)
}
