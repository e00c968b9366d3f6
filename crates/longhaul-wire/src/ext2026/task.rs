//! A task as this generation shows it.

use longhaul_task::{Json, Outcome, Phase, TaskId};

use super::{Params, input};
use crate::View;
use crate::jsonrpc::{RpcError, fault_code, write_error};
use crate::project::{self, Words};
use crate::splice;

/// The task that a request is about.
pub fn required_task_id(params: &Params<'_>) -> Result<TaskId, RpcError> {
    crate::params::required_task_id(params.task_id)
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
    let words = Words {
        status: status(&view.task.phase),
        message: view.message().map(|message| &**message),
        // The protocol knows no retention of nothing.
        ttl: ("ttlMs", 1),
        poll_interval: "pollIntervalMs",
    };
    project::write(out, view, &words);
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
            write_error(out, fault_code(fault), &fault.message, fault.data.as_ref());
        }
        Phase::Queued { .. }
        | Phase::Running { .. }
        | Phase::Parked { .. }
        | Phase::Settled { outcome: Outcome::Cancelled, .. } => {}
    }
}

/// A guess of how many bytes a detailed task takes.
pub(super) fn room(view: &View<'_>) -> usize {
    let payload = match &view.task.phase {
        Phase::Waiting { questions, .. } => questions.iter().map(|asked| asked.params.bytes() + 128).sum(),
        Phase::Settled { outcome: Outcome::Answer { body, .. }, .. } => body.bytes(),
        Phase::Settled { outcome: Outcome::Refusal(fault), .. } => {
            fault.message.len() + fault.data.as_ref().map_or(0, Json::bytes)
        }
        _ => 0,
    };
    project::room(view) + payload
}
