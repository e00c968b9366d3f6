use crate::{Change, Effect, Phase, Refused, Task, Timestamp};

/// The time has come that a parked task waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wake {
    /// The task's fence when somebody saw that it was time: it may have woken since, and sleep again.
    pub fence: u64,
}

pub(super) fn apply(task: &Task, event: &Wake, now: Timestamp) -> Result<Change, Refused> {
    task.must_be_open()?;
    if task.fence != event.fence {
        return Err(Refused::Fenced);
    }
    match task.phase.rest().and_then(|rest| rest.wake_at) {
        Some(wake_at) if now >= wake_at => Ok(wake(task, now)),
        Some(_) => Err(Refused::TooEarly),
        None => Err(Refused::WrongPhase(task.phase.name())),
    }
}

/// Puts a task that is in nobody's memory into the queue. Its questions stay open.
pub(super) fn wake(task: &Task, now: Timestamp) -> Change {
    let mut next = task.touched(now);
    let not_before = next.updated_at;
    next.phase = Phase::queued(not_before, task.phase.questions().cloned());
    let queued = Effect::queued(task, not_before);
    Change::of(next).with(queued)
}
