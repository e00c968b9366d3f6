use crate::{Change, Effect, Refused, Task, Timestamp};

/// The requestor or the operator deletes a settled family before it expires. A child is never deleted alone, because
/// its parent refers to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delete;

pub(super) fn apply(task: &Task, _event: &Delete, now: Timestamp) -> Result<Change, Refused> {
    if !task.is_root() {
        return Err(Refused::NotRoot);
    }
    if !task.is_settled() {
        return Err(Refused::WrongPhase(task.phase.name()));
    }
    Ok(Change::new(task.next_revision(now)).with_effect(Effect::Deleted))
}
