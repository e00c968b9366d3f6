use std::sync::Arc;

use crate::{Change, Outcome, Refused, Surroundings, Task, Timestamp};

/// Somebody calls the task off. It is cancelled at once and for good, and everything below it that has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cancel {
    /// Why, for whoever reads the status message.
    pub reason: Option<Arc<str>>,
}

pub(super) fn apply(task: &Task, event: &Cancel, around: &Surroundings, now: Timestamp) -> Result<Change, Refused> {
    task.must_be_open()?;
    let mut change = super::end_family(task, Outcome::Cancelled, around, now);
    if let Some(reason) = &event.reason {
        change.task.message = Some(crate::task::short(reason));
    }
    Ok(change)
}
