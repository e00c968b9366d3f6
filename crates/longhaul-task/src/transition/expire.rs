use crate::{Change, Effect, Refused, Task, Timestamp};

/// The family's retention is over. Only a settled family expires, and it expires as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expire;

pub(super) fn apply(task: &Task, _event: &Expire, now: Timestamp) -> Result<Change, Refused> {
    if !task.is_root() {
        return Err(Refused::NotRoot);
    }
    if !task.is_settled() {
        return Err(Refused::WrongPhase(task.phase.name()));
    }
    match task.expires_at() {
        Some(at) if now >= at => Ok(Change::new(task.next_revision(now)).with_effect(Effect::Deleted)),
        _ => Err(Refused::TooEarly),
    }
}
