use super::wake;
use crate::{Change, Phase, Task, Timestamp, TransitionError};

/// The clock has gone back since the task began to wait or to run. Its wait is shortened to its own length by the clock as
/// it is now, and the time for which its attempt may run begins again. A parked task is woken: its handler knows how long
/// it wanted to wait, and waits again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Shorten {
    /// How long the attempt has run by the measurement of its node, if the clock shows more because it was set forward.
    pub ran_ms: Option<u64>,
}

pub(super) fn apply(task: &Task, event: &Shorten, now: Timestamp) -> Result<Change, TransitionError> {
    task.ensure_open()?;
    let mut phase = task.phase.by_clock(now);
    if let (Phase::Running { run }, Some(ran_ms)) = (&mut phase, event.ran_ms) {
        run.since = run.since.max(now.minus_ms(ran_ms));
    }
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
