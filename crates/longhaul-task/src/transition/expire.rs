use crate::{Change, Effect, Task, Timestamp, TransitionError};

/// The family's retention is over. Only a settled family expires, and it expires as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expire;

pub(super) fn apply(task: &Task, _event: &Expire, now: Timestamp) -> Result<Change, TransitionError> {
    if !task.is_root() {
        return Err(TransitionError::NotRoot);
    }
    if !task.is_settled() {
        return Err(TransitionError::WrongPhase(task.phase.name()));
    }
    match task.expires_at() {
        Some(at) if now >= at => Ok(Change::new(task.next_revision(now)).with_effect(Effect::Deleted)),
        _ => Err(TransitionError::TooEarly),
    }
}
