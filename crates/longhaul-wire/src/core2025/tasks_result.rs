//! `tasks/result`: what the request would have been answered with, had it not become a task.

use longhaul_task::Outcome;

use super::{Related, Revision, result};
use crate::jsonrpc::{self, RequestId, RpcError};
use crate::{View, refusal};

/// The answer, once the task has ended; until then there is none, and the request waits.
pub fn answer(id: &RequestId, view: &View<'_>, revision: Revision) -> Option<String> {
    Some(match view.task.phase.outcome()? {
        Outcome::Answer { body, .. } => jsonrpc::response(id, body.bytes() + 128, |out| {
            result::write(out, body.as_str(), revision, Some(Related::to(view.task)));
        }),
        Outcome::Refusal(fault) => jsonrpc::error(Some(id), &RpcError::from(fault)),
        Outcome::Cancelled => jsonrpc::error(Some(id), &refusal::task_was_cancelled()),
    })
}
