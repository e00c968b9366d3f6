use std::sync::Arc;

use crate::{Change, Outcome, Surroundings, Task, Timestamp, TransitionError};

/// The requestor or the operator cancels the task. The task and its open descendants settle in the same commit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cancel {
    /// Becomes the status message.
    pub reason: Option<Arc<str>>,
}

pub(super) fn apply(
    task: &Task,
    event: &Cancel,
    surroundings: &Surroundings,
    now: Timestamp,
) -> Result<Change, TransitionError> {
    task.ensure_open()?;
    let mut change = super::end_family(task, Outcome::Cancelled, surroundings, now);
    if let Some(reason) = &event.reason {
        change.task.message = Some(crate::task::cut_message(reason));
    }
    Ok(change)
}
