use crate::{Change, Effect, Phase, Surroundings, Task, Timestamp, TransitionError, Wait};

/// The attempt puts the task back into the queue because another attempt may succeed. It counts as a failed attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    pub fence: u64,
    /// The time for which no worker may claim the task.
    pub wait_ms: u64,
}

pub(super) fn apply(
    task: &Task,
    event: &Release,
    surroundings: &Surroundings,
    now: Timestamp,
) -> Result<Change, TransitionError> {
    task.check_fence(event.fence)?;
    if !task.has_attempts_left() {
        return Err(TransitionError::AttemptsSpent);
    }
    Ok(requeue(task, event.wait_ms, surroundings, now))
}

/// Puts a task whose attempt failed back into the queue. An attempt that resumes uses the open questions and the
/// children of the last one. An attempt that starts over creates its own, so the open questions are removed and the
/// children cancelled.
pub(super) fn requeue(task: &Task, wait_ms: u64, surroundings: &Surroundings, now: Timestamp) -> Change {
    let mut next = task.next_revision(now);
    next.fence += 1;
    next.failed_attempts = next.failed_attempts.saturating_add(1);
    // By the clock, and not by the task's last change, which is later if the clock has gone back.
    let wait = Wait::of_ms(now, wait_ms);
    let questions = task.phase.questions().filter(|_| task.resumes());
    next.phase = Phase::queued(wait, questions.cloned());
    let mut change = Change::new(next).with_effect(Effect::queued(task, wait.until));
    if !task.resumes() {
        super::end_descendants(&mut change, surroundings, now);
    }
    change
}
