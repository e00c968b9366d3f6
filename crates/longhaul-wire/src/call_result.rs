//! Answers to `tools/call`, `prompts/get`, `resources/read` and `completion/complete` that create no task.

use longhaul_task::{Json, QuestionKind};

use crate::{Cache, ReplyTo, jsonrpc, prompt, question, resource, session_result, splice, text};

/// What the result of a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultForm {
    Tool,
    Prompt,
    /// With how long it may be cached, in the stateless era.
    Resource(Cache),
    Completion,
}

/// The answer with a result of this form.
pub fn complete_as(form: ResultForm, to: &ReplyTo<'_>, body: &Json) -> String {
    match form {
        ResultForm::Tool => complete(to, body),
        ResultForm::Resource(cache) => resource::write_read(to, body, cache),
        ResultForm::Prompt | ResultForm::Completion if to.revision.is_stateless() => complete(to, body),
        ResultForm::Prompt => {
            jsonrpc::response(to.id, body.bytes(), |out| prompt::write_result(out, body.as_str(), to.revision))
        }
        ResultForm::Completion => jsonrpc::result(to.id, body.as_str()),
    }
}

/// The answer with the tool's result.
pub fn complete(to: &ReplyTo<'_>, body: &Json) -> String {
    jsonrpc::response(to.id, to.server.room() + body.bytes(), |out| {
        if to.revision.is_stateless() {
            splice::write_complete(out, body.as_str(), to.server.member());
        } else {
            session_result::write(out, body.as_str(), to.revision, None);
        }
    })
}

/// A question that a stateless call asks before it goes on.
#[derive(Debug, Clone)]
pub struct InputRequest {
    /// The name of its answer in `inputResponses`.
    pub key: String,
    pub kind: QuestionKind,
    pub params: Json,
}

/// The answer that asks the client for input before it calls again, in the stateless era. At least one of `requests` and
/// `state` must be present.
pub fn input_required(to: &ReplyTo<'_>, requests: &[InputRequest], state: Option<&str>) -> String {
    let asked: usize = requests.iter().map(|request| request.key.len() + request.params.bytes() + 64).sum();
    jsonrpc::response(to.id, to.server.room() + asked + state.map_or(0, str::len), |out| {
        out.push_str("{\"resultType\":\"input_required\"");
        if !requests.is_empty() {
            write_input_requests(out, requests.iter().map(|asked| (asked.key.as_str(), asked.kind, &asked.params)));
        }
        if let Some(state) = state {
            text::push_str_member(out, "requestState", state);
        }
        to.server.write_meta(out);
        out.push('}');
    })
}

/// Appends `,"inputRequests":{…}`.
pub(crate) fn write_input_requests<'q>(
    out: &mut String,
    questions: impl Iterator<Item = (&'q str, QuestionKind, &'q Json)>,
) {
    out.push_str(",\"inputRequests\":{");
    for (index, (key, kind, params)) in questions.enumerate() {
        if index > 0 {
            out.push(',');
        }
        text::push_str(out, key);
        out.push_str(":{\"method\":\"");
        out.push_str(question::method(kind));
        out.push_str("\",\"params\":");
        out.push_str(params.as_str());
        out.push('}');
    }
    out.push('}');
}
