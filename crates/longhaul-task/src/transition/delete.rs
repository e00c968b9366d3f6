use crate::{Change, Effect, Task, Timestamp, TransitionError};

/// The requestor or the operator deletes a settled family before it expires. A child is never deleted alone, because
/// its parent refers to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delete;

pub(super) fn apply(task: &Task, _event: &Delete, now: Timestamp) -> Result<Change, TransitionError> {
    if !task.is_root() {
        return Err(TransitionError::NotRoot);
    }
    if !task.is_settled() {
        return Err(TransitionError::WrongPhase(task.phase.name()));
    }
    Ok(Change::new(task.next_revision(now)).with_effect(Effect::Deleted))
}
