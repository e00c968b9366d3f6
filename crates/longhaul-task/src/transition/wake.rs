use crate::{Change, Effect, Phase, Task, Timestamp, TransitionError, Wait, WakeCondition};

/// The timer of a parked task has expired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wake {
    /// The fence that the task had when its timer was found to be due. The task may have been woken and parked again
    /// since; then the event is refused.
    pub fence: u64,
}

pub(super) fn apply(task: &Task, event: &Wake, now: Timestamp) -> Result<Change, TransitionError> {
    task.ensure_open()?;
    if task.fence != event.fence {
        return Err(TransitionError::Fenced);
    }
    match task.phase.wake_condition().and_then(WakeCondition::wake_at) {
        Some(wake_at) if now >= wake_at => Ok(wake(task, now)),
        Some(_) => Err(TransitionError::TooEarly),
        None => Err(TransitionError::WrongPhase(task.phase.name())),
    }
}

/// Puts a parked task into the queue. Its questions stay open.
pub(super) fn wake(task: &Task, now: Timestamp) -> Change {
    queue(task.next_revision(now), now)
}

/// Puts the next revision of a parked task into the queue.
pub(super) fn queue(mut next: Task, now: Timestamp) -> Change {
    next.phase = Phase::queued(Wait::until(now, now), next.phase.questions().cloned());
    let queued = Effect::queued(&next, now);
    Change::new(next).with_effect(queued)
}
