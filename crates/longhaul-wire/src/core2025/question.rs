//! Questions to the client, as requests of the server, and what comes back.

use std::borrow::Cow;

use longhaul_task::{Json, QuestionKind, Task};
use serde_json::value::RawValue;

use super::related::write_meta;
use super::requestor::RemoteTask;
use super::{Peer, RELATED_TASK, Related};
use crate::jsonrpc::{self, RequestId, RpcError};
use crate::question::{self, WrongAnswer};
use crate::{Capability, text};

/// A question on its way to a client that can answer it.
#[derive(Debug, Clone, Copy)]
pub struct Asking<'a> {
    /// What it is called by: in its task, if it has one.
    pub key: &'a str,
    /// What kind of thing is asked for.
    pub kind: QuestionKind,
    /// The request's parameters, in no revision's form.
    pub params: &'a Json,
    /// The task that asks.
    pub related: Option<Related<'a>>,
    /// Asks the client to answer by way of a task of its own, kept for that many milliseconds. Only a client that
    /// declared it is asked so.
    pub as_task_ms: Option<u64>,
}

impl<'a> Asking<'a> {
    /// An open question of a task.
    pub fn of(task: &'a Task, question: &'a longhaul_task::Question) -> Self {
        Self {
            key: question.key.as_str(),
            kind: question.kind,
            params: &question.params,
            related: Some(Related::to(task)),
            as_task_ms: None,
        }
    }
}

/// The request, in the form of the client's revision. Whether it can answer at all was asked before
/// ([`Peer::can_answer`]).
pub fn request(id: &RequestId, asking: &Asking<'_>, peer: Peer) -> String {
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

/// Whether a parameter goes to this client as it is.
fn belongs(name: &str, value: &RawValue, asking: &Asking<'_>, peer: Peer) -> bool {
    match (asking.kind, name) {
        // These two are the protocol's, not the question's.
        (_, "task" | "_meta") => false,
        (QuestionKind::Elicitation, "mode") => peer.revision.has_url_elicitation(),
        (QuestionKind::Sampling, "includeContext") if peer.revision.has_sampling_tools() => {
            value.get() == "\"none\"" || peer.capabilities.has(Capability::SamplingContext)
        }
        _ => true,
    }
}

/// The schema of a form with its `properties`, which a form that only wants a yes may lack, and clients insist on.
fn with_properties(schema: &RawValue) -> Cow<'_, str> {
    match schema.get().strip_prefix('{') {
        Some(inside) if text::member(schema, "properties").is_none() => {
            let comma = if inside.trim_start().starts_with('}') { "" } else { "," };
            Cow::Owned(format!("{{\"properties\":{{}}{comma}{inside}"))
        }
        _ => Cow::Borrowed(schema.get()),
    }
}

/// The revision wants a name for every elicitation by URL. The same question, asked again, has the same one.
fn elicitation_id(id: &RequestId, asking: &Asking<'_>) -> String {
    match asking.related {
        Some(related) => format!("{}/{}", related.task_id, asking.key),
        None => format!("{}/{}", id.as_json().trim_matches('"'), asking.key),
    }
}

/// What a client sent back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// The answer, fit for its question. To decline and to cancel are answers, too.
    Answer(Json),
    /// An answer that does not fit. It cannot be refused, so the question is to be asked again, as a new request.
    Unfit(WrongAnswer),
    /// The client will answer by way of this task.
    Task(RemoteTask),
    /// The client refused to answer, or could not.
    Refused(RpcError),
}

/// Reads the response to a question, or to the `tasks/result` of the task that it became.
pub fn reply(asking: &Asking<'_>, outcome: Result<&RawValue, RpcError>) -> Reply {
    let result = match outcome {
        Ok(result) => result,
        Err(error) => return Reply::Refused(error),
    };
    // A client may answer at once though it was asked to make a task, so what came is what decides.
    if asking.as_task_ms.is_some()
        && let Some(task) = text::member(result, "task")
        && let Ok(task) = RemoteTask::parse(task)
    {
        return Reply::Task(task);
    }
    match question::check_parts(Some(asking.key), asking.kind, asking.params, result) {
        Ok(()) => Reply::Answer(neutral(result)),
        Err(wrong) => Reply::Unfit(wrong),
    }
}

/// The answer without the key that tied it to its task: that was for the way.
fn neutral(result: &RawValue) -> Json {
    if !result.get().contains(RELATED_TASK) {
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
