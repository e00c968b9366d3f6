use crate::{Change, Effect, Refused, Task, Timestamp};

/// Somebody deletes a settled family before its time. A child alone is never deleted: its parent still names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delete;

pub(super) fn apply(task: &Task, _event: &Delete, now: Timestamp) -> Result<Change, Refused> {
    if !task.is_root() {
        return Err(Refused::NotRoot);
    }
    if !task.is_settled() {
        return Err(Refused::WrongPhase(task.phase.name()));
    }
    Ok(Change::of(task.touched(now)).with(Effect::Deleted))
}
