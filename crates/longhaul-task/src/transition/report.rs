use std::sync::Arc;

use crate::{Change, Refused, Task, Timestamp};

/// The attempt says what it is doing, durably. For what changes many times a second there is the progress slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The attempt's fence.
    pub fence: u64,
    /// The status message.
    pub message: Arc<str>,
}

pub(super) fn apply(task: &Task, event: &Report, now: Timestamp) -> Result<Change, Refused> {
    task.must_hold(event.fence)?;
    let mut next = task.touched(now);
    next.message = Some(crate::task::short(&event.message));
    Ok(Change::of(next))
}
