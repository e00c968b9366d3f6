//! A task as this generation shows it.

use longhaul_task::{Json, Outcome, Phase, TaskId};

use super::params::required_string;
use super::{Params, input};
use crate::View;
use crate::jsonrpc::{RpcError, write_error};
use crate::{splice, text};

/// The task that a request is about.
pub fn required_task_id(params: &Params<'_>) -> Result<TaskId, RpcError> {
    let text = required_string("taskId", params.task_id)?;
    // What cannot be an ID is nobody's ID: the same answer as for one that nobody has.
    TaskId::parse(&text).map_err(|_| no_such_task())
}

/// The answer for a task that does not exist, that has expired, or that is somebody else's: nobody can tell which.
pub fn no_such_task() -> RpcError {
    RpcError::invalid_params("Failed to retrieve task: Task not found")
}

/// The five statuses.
fn status(phase: &Phase) -> &'static str {
    match phase {
        Phase::Queued { .. } | Phase::Running { .. } | Phase::Parked { .. } => "working",
        Phase::Waiting { .. } => "input_required",
        // A tool that reports an error has completed; only a refusal of the protocol is a failure here.
        Phase::Settled { outcome: Outcome::Answer { .. }, .. } => "completed",
        Phase::Settled { outcome: Outcome::Refusal(_), .. } => "failed",
        Phase::Settled { outcome: Outcome::Cancelled, .. } => "cancelled",
    }
}

/// Appends the members that every picture of a task has, from `"taskId"` on, without a comma before it.
pub(super) fn write_plain(out: &mut String, view: &View<'_>) {
    let task = view.task;
    out.push_str("\"taskId\":");
    text::push_str(out, task.key.id.as_str());
    text::push_str_member(out, "status", status(&task.phase));
    if let Some(message) = view.message() {
        text::push_str_member(out, "statusMessage", message);
    }
    text::push_time_member(out, "createdAt", task.created_at);
    text::push_time_member(out, "lastUpdatedAt", view.updated_at());
    match task.ttl_ms(view.now) {
        // The protocol knows no retention of nothing.
        Some(ms) => text::push_number_member(out, "ttlMs", ms.max(1)),
        None => text::push_raw_member(out, "ttlMs", "null"),
    }
    if view.poll_interval_ms > 0 {
        text::push_number_member(out, "pollIntervalMs", view.poll_interval_ms);
    }
    if let Some(parent) = &task.family.parent {
        text::push_str_member(out, "parentTaskId", parent.as_str());
    }
    if !view.children.is_empty() {
        out.push_str(",\"childTaskIds\":[");
        for (place, child) in view.children.iter().enumerate() {
            if place > 0 {
                out.push(',');
            }
            text::push_str(out, child.as_str());
        }
        out.push(']');
    }
}

/// Appends the same and what the status brings with it: the result, the error, the open questions.
pub(super) fn write_detailed(out: &mut String, view: &View<'_>) {
    write_plain(out, view);
    match &view.task.phase {
        Phase::Waiting { questions, .. } => {
            input::write(out, questions.iter().map(|asked| (asked.key.as_str(), asked.kind, &asked.params)));
        }
        Phase::Settled { outcome: Outcome::Answer { body, .. }, .. } => {
            out.push_str(",\"result\":");
            splice::write_complete(out, body.as_str(), "");
        }
        Phase::Settled { outcome: Outcome::Refusal(fault), .. } => {
            out.push_str(",\"error\":");
            write_error(out, fault.code, &fault.message, fault.data.as_ref());
        }
        Phase::Queued { .. }
        | Phase::Running { .. }
        | Phase::Parked { .. }
        | Phase::Settled { outcome: Outcome::Cancelled, .. } => {}
    }
}

/// A guess of how many bytes a detailed task takes.
pub(super) fn room(view: &View<'_>) -> usize {
    const PLAIN_BYTES: usize = 384;
    const CHILD_BYTES: usize = 48;
    let payload = match &view.task.phase {
        Phase::Waiting { questions, .. } => questions.iter().map(|asked| asked.params.bytes() + 128).sum(),
        Phase::Settled { outcome: Outcome::Answer { body, .. }, .. } => body.bytes(),
        Phase::Settled { outcome: Outcome::Refusal(fault), .. } => {
            fault.message.len() + fault.data.as_ref().map_or(0, Json::bytes)
        }
        _ => 0,
    };
    PLAIN_BYTES + view.message().map_or(0, |message| message.len()) + CHILD_BYTES * view.children.len() + payload
}
