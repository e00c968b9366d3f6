//! Questions to the client of a session: requests of the server, and their responses.

use std::borrow::Cow;

use longhaul_task::{Json, QuestionKind, Task};
use serde_json::value::RawValue;

use crate::jsonrpc::{self, RequestId, RpcError};
use crate::question::{self, WrongAnswer};
use crate::related::{self, RelatedTask, write_meta};
use crate::remote_task::RemoteTask;
use crate::{Capability, Generation, Peer, text};

/// A question for a client that can answer it.
#[derive(Debug, Clone, Copy)]
pub struct ClientQuestion<'a> {
    pub key: &'a str,
    pub kind: QuestionKind,
    /// The parameters as the handler gave them; [`request`] adapts them to the client's revision.
    pub params: &'a Json,
    /// The task that asks.
    pub related: Option<RelatedTask<'a>>,
    /// Asks the client to answer with a task of its own, kept for that many milliseconds. Has no effect for a client
    /// that did not declare such tasks.
    pub as_task_ms: Option<u64>,
}

impl<'a> ClientQuestion<'a> {
    /// An open question of a task.
    pub fn of(generation: Generation, task: &'a Task, question: &'a longhaul_task::Question) -> Self {
        Self {
            key: question.key.as_str(),
            kind: question.kind,
            params: &question.params,
            related: Some(RelatedTask::to(generation, task)),
            as_task_ms: None,
        }
    }
}

/// The request in the form of the client's revision. The caller has checked [`Peer::can_answer`].
pub fn request(id: &RequestId, asking: &ClientQuestion<'_>, peer: Peer) -> String {
    let mut members = String::with_capacity(asking.params.bytes() + 192);
    let given = text::raw(asking.params.as_str());
    if let Some(given) = given {
        text::each_member(given, |name, value| {
            if name == "requestedSchema" {
                text::push_raw_member(&mut members, "requestedSchema", &with_properties(value));
            } else if belongs(&name, value, asking, peer) {
                text::push_foreign_member(&mut members, &name, value.get());
            }
        });
    }
    let is_by_url = asking.kind == QuestionKind::Elicitation && question::is_by_url(asking.params);
    if is_by_url && given.and_then(|given| text::member(given, "elicitationId")).is_none() {
        text::push_str_member(&mut members, "elicitationId", &elicitation_id(id, asking));
    }
    if let Some(ttl_ms) = asking.as_task_ms.filter(|_| peer.can_run_as_task(asking.kind)) {
        members.push_str(",\"task\":{\"ttl\":");
        text::push_number(&mut members, ttl_ms);
        members.push('}');
    }
    write_meta(&mut members, given.and_then(|given| text::member(given, "_meta")), asking.related);
    let params = format!("{{{}}}", members.strip_prefix(',').unwrap_or_default());
    jsonrpc::request(id, question::method(asking.kind), &params)
}

/// Whether a parameter is sent to this client as it is.
fn belongs(name: &str, value: &RawValue, asking: &ClientQuestion<'_>, peer: Peer) -> bool {
    match (asking.kind, name) {
        // The protocol's own members; a question cannot set them.
        (_, "task" | "_meta") => false,
        (QuestionKind::Elicitation, "mode") => peer.revision.has_url_elicitation(),
        (QuestionKind::Sampling, "includeContext") if peer.revision.has_sampling_tools() => {
            value.get() == "\"none\"" || peer.capabilities.has(Capability::SamplingContext)
        }
        _ => true,
    }
}

/// The schema of a form with `properties`. A form that only asks for consent may lack them, and clients refuse it then.
fn with_properties(schema: &RawValue) -> Cow<'_, str> {
    match schema.get().strip_prefix('{') {
        Some(inside) if text::member(schema, "properties").is_none() => {
            let comma = if inside.trim_start().starts_with('}') { "" } else { "," };
            Cow::Owned(format!("{{\"properties\":{{}}{comma}{inside}"))
        }
        _ => Cow::Borrowed(schema.get()),
    }
}

/// An ID for an elicitation by URL, which the revision requires. A question that is asked again keeps its ID.
fn elicitation_id(id: &RequestId, asking: &ClientQuestion<'_>) -> String {
    match asking.related {
        Some(related) => format!("{}/{}", related.task_id.shown(), asking.key),
        None => format!("{}/{}", id.as_json().trim_matches('"'), asking.key),
    }
}

/// The client's response to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AskReply {
    /// The answer fits its question. Declining and cancelling are answers, too.
    Answer(Json),
    /// The answer does not fit. A response cannot be refused, so the question has to be asked again as a new request.
    Unfit(WrongAnswer),
    /// The client will answer with this task.
    Task(RemoteTask),
    /// The client refused to answer, or could not.
    Refused(RpcError),
}

/// Reads the response to a question, or to the `tasks/result` of the task that it became.
pub fn reply(asking: &ClientQuestion<'_>, outcome: Result<&RawValue, RpcError>) -> AskReply {
    let result = match outcome {
        Ok(result) => result,
        Err(error) => return AskReply::Refused(error),
    };
    // A client that was asked for a task may answer at once, so the response decides.
    if asking.as_task_ms.is_some()
        && let Some(task) = text::member(result, "task")
        && let Ok(task) = RemoteTask::parse(task)
    {
        return AskReply::Task(task);
    }
    match question::check_parts(Some(asking.key), asking.kind, asking.params, result) {
        Ok(()) => AskReply::Answer(neutral(result)),
        Err(wrong) => AskReply::Unfit(wrong),
    }
}

/// The answer without its related-task key, which only served to match it with its task.
fn neutral(result: &RawValue) -> Json {
    if !related::keys().any(|key| result.get().contains(key)) {
        return Json::from_text(result.get());
    }
    let mut members = String::with_capacity(result.get().len());
    text::each_member(result, |name, value| {
        if name == "_meta" {
            write_meta(&mut members, Some(value), None);
        } else {
            text::push_foreign_member(&mut members, &name, value.get());
        }
    });
    Json::from_text(format!("{{{}}}", members.strip_prefix(',').unwrap_or_default()))
}

/// `ping`, to the client.
pub fn ping(id: &RequestId) -> String {
    jsonrpc::request(id, "ping", "{}")
}
