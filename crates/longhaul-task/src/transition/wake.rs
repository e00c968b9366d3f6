use crate::{Change, Effect, Phase, Refused, Task, Timestamp};

/// What a parked task waited for has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wake;

pub(super) fn apply(task: &Task, _event: &Wake, now: Timestamp) -> Result<Change, Refused> {
    task.must_be_open()?;
    let Phase::Parked { .. } = task.phase else {
        return Err(Refused::WrongPhase(task.phase.name()));
    };
    let mut next = task.touched(now);
    let not_before = next.updated_at;
    next.phase = Phase::Queued { not_before };
    Ok(Change::of(next).with(Effect::Queued { not_before }))
}
