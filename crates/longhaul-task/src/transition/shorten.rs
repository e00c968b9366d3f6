use super::wake;
use crate::{Change, Task, Timestamp, TransitionError};

/// The clock has gone back since the task began to wait or to run. Its wait is shortened to its own length by the clock as
/// it is now, and the time for which its attempt may run begins again. A parked task is woken: its handler knows how long
/// it wanted to wait, and waits again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shorten;

pub(super) fn apply(task: &Task, _event: &Shorten, now: Timestamp) -> Result<Change, TransitionError> {
    task.ensure_open()?;
    let phase = task.phase.by_clock(now);
    if phase == task.phase {
        return Err(TransitionError::NothingToShorten);
    }
    let timer = task.phase.wake_condition().and_then(|condition| condition.timer);
    let mut next = task.next_revision(now);
    next.phase = phase;
    if timer.is_some_and(|timer| timer.since > now) {
        return Ok(wake::queue(next, now));
    }
    Ok(Change::new(next))
}
