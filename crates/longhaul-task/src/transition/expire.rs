use crate::{Change, Effect, Refused, Task, Timestamp};

/// The family's retention is over. Only settled families expire, as a whole.
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
        Some(at) if now >= at => Ok(Change::of(task.touched(now)).with(Effect::Deleted)),
        _ => Err(Refused::TooEarly),
    }
}
