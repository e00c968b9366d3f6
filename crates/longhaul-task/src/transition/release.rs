use crate::{Change, Effect, Phase, Refused, Surroundings, Task, Timestamp};

/// The attempt hands the task back unfinished: it failed in a way worth another try. That counts as an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// The attempt's fence.
    pub fence: u64,
    /// How long nobody should take it.
    pub wait_ms: u64,
}

pub(super) fn apply(task: &Task, event: &Release, around: &Surroundings, now: Timestamp) -> Result<Change, Refused> {
    task.must_hold(event.fence)?;
    if !task.has_attempts_left() {
        return Err(Refused::AttemptsSpent);
    }
    Ok(requeue(task, event.wait_ms, around, now))
}

/// Puts a task whose attempt came to nothing back into the queue. The next attempt of a tool that resumes finds the
/// open questions and the children of this one. One that starts over would make its own and know nothing of these, so
/// they end here: the questions are gone, the children are cancelled.
pub(super) fn requeue(task: &Task, wait_ms: u64, around: &Surroundings, now: Timestamp) -> Change {
    let mut next = task.touched(now);
    next.fence += 1;
    next.spent = next.spent.saturating_add(1);
    let not_before = next.updated_at.plus_ms(wait_ms);
    let questions = task.phase.questions().filter(|_| task.resumes());
    next.phase = Phase::queued(not_before, questions.cloned());
    let mut change = Change::of(next).with(Effect::queued(task, not_before));
    if !task.resumes() {
        super::end_descendants(&mut change, around, now);
    }
    change
}
