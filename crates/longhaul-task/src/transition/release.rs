use std::sync::Arc;

use crate::{AttemptEnd, AttemptRecord, Change, Effect, Phase, Surroundings, Task, Timestamp, TransitionError, Wait};

/// The attempt puts the task back into the queue because another attempt may succeed. It counts as a failed attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    pub fence: u64,
    /// The time for which no worker may claim the task.
    pub wait_ms: u64,
    /// Why the attempt failed, for the history.
    pub reason: Arc<str>,
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
    let failed_attempts = task.failed_attempts.saturating_add(1);
    let end = AttemptEnd::Released(crate::task::cut_message(&event.reason));
    Ok(requeue(task, failed_attempts, event.wait_ms, end, surroundings, now))
}

/// Puts a task whose attempt failed back into the queue. An attempt that resumes uses the open questions and the
/// children of the last one. An attempt that starts over creates its own, so the open questions are removed and the
/// children cancelled.
pub(super) fn requeue(
    task: &Task,
    failed_attempts: u32,
    wait_ms: u64,
    end: AttemptEnd,
    surroundings: &Surroundings,
    now: Timestamp,
) -> Change {
    let mut next = task.next_revision(now);
    next.fence += 1;
    next.failed_attempts = failed_attempts;
    // By the clock, and not by the task's last change, which is later if the clock has gone back.
    let wait = Wait::of_ms(now, wait_ms);
    let questions = task.phase.questions().filter(|_| task.resumes());
    next.phase = Phase::queued(wait, questions.cloned());
    let mut change = Change::new(next).with_effect(Effect::queued(task, wait.until));
    change.ended_attempt = AttemptRecord::of(task, end, now);
    if !task.resumes() {
        super::end_descendants(&mut change, surroundings, now);
    }
    change
}
