//! `tasks/cancel`: a task is called off, and shown as it then stands.

use super::Status;
use crate::jsonrpc::RpcError;
use crate::{View, refusal};

/// The answer: the task, cancelled.
pub use super::tasks_get::answer;

/// The refusal for a task that had ended before.
pub fn already_ended(view: &View<'_>) -> RpcError {
    refusal::already_ended(Status::of(&view.task.phase).as_str())
}
