use std::sync::Arc;

use crate::{Change, Task, Timestamp, TransitionError};

/// The attempt sets the status message durably. For what changes many times a second use [`Progress`](crate::Progress).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    pub fence: u64,
    pub message: Arc<str>,
}

pub(super) fn apply(task: &Task, event: &Report, now: Timestamp) -> Result<Change, TransitionError> {
    task.check_fence(event.fence)?;
    let mut next = task.next_revision(now);
    next.message = Some(crate::task::cut_message(&event.message));
    Ok(Change::new(next))
}
