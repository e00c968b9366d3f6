use super::release::requeue;
use crate::{AttemptEnd, Change, NodeId, OnCrash, Outcome, Surroundings, Task, TaskError, Timestamp, TransitionError};

/// The node that held the task is dead. The tool's `on_crash` decides what happens to the task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lose {
    /// The dead node. The event is refused if another node holds the task now.
    pub node: NodeId,
    /// The fence of the lost attempt. The event is refused if the node holds a newer attempt now.
    pub fence: u64,
}

pub(super) fn apply(
    task: &Task,
    event: &Lose,
    surroundings: &Surroundings,
    now: Timestamp,
) -> Result<Change, TransitionError> {
    task.ensure_open()?;
    match task.phase.active_attempt() {
        Some(run) if run.node == event.node && task.fence == event.fence => {}
        Some(_) => return Err(TransitionError::Fenced),
        None => return Err(TransitionError::WrongPhase(task.phase.name())),
    }
    // An attempt that wrote entries got further than the one before: the task does not kill its process at the same place.
    let before = if surroundings.attempt_wrote_entries { 0 } else { task.failed_attempts };
    let failed_attempts = before.saturating_add(1);
    let may_run_again = task.policy.on_crash != OnCrash::Fail && failed_attempts < task.policy.attempts_max;
    Ok(if may_run_again {
        let wait_ms = task.policy.backoff_after_ms(failed_attempts);
        requeue(task, failed_attempts, wait_ms, AttemptEnd::Lost, surroundings, now)
    } else {
        super::end_family(task, Outcome::Error(TaskError::crash_recovery(task)), surroundings, now)
    })
}
