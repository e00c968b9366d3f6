use crate::{Change, Task, Timestamp, TransitionError};

/// The task still works, and the time for which it has promised to be kept is almost over. A later promise counts from now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renew;

pub(super) fn apply(task: &Task, _event: &Renew, now: Timestamp) -> Result<Change, TransitionError> {
    task.ensure_open()?;
    match task.renew_at() {
        Some(renew_at) if now >= renew_at => Ok(Change::new(task.next_revision(now))),
        _ => Err(TransitionError::TooEarly),
    }
}
