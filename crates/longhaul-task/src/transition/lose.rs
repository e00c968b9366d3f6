use super::release::requeue;
use crate::{AttemptEnd, Change, NodeId, OnCrash, Outcome, Surroundings, Task, TaskError, Timestamp, TransitionError};

/// The node that held the task is dead or stops. The tool's `on_crash` decides what happens to the task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lose {
    /// The dead node. The event is refused if another node holds the task now.
    pub node: NodeId,
    /// The fence of the lost attempt. The event is refused if the node holds a newer attempt now.
    pub fence: u64,
    /// Whether the node stops as it was told to. Then the attempt does not count as failed, and the next one need not wait.
    pub is_stop: bool,
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
    let before = if surroundings.attempt_wrote_at.is_some() { 0 } else { task.failed_attempts };
    let failed_attempts = before.saturating_add(u32::from(!event.is_stop));
    let may_run_again = task.policy.on_crash != OnCrash::Fail && failed_attempts < task.policy.attempts_max;
    // The process may have been dead for long when this is noticed.
    let last_sign = surroundings.attempt_wrote_at.map_or(task.updated_at, |wrote_at| wrote_at.max(task.updated_at));
    let mut change = if may_run_again && event.is_stop {
        requeue(task, failed_attempts, 0, AttemptEnd::Stopped, surroundings, now)
    } else if may_run_again {
        let wait_ms = spread(task, task.policy.backoff_after_ms(failed_attempts));
        requeue(task, failed_attempts, wait_ms, AttemptEnd::Lost, surroundings, now)
    } else {
        super::end_family(task, Outcome::Error(TaskError::crash_recovery(task)), surroundings, now)
    };
    if let Some(ended) = change.ended_attempt.as_mut().filter(|ended| ended.end == AttemptEnd::Lost) {
        ended.ended_at = last_sign.min(now).max(ended.began_at.min(now));
    }
    Ok(change)
}

/// A part of the wait, from a half to all of it, that depends on the task and the attempt. If the tasks of a dead process
/// began again at the same moment, one that kills its process each time would take the attempts of all others with it.
fn spread(task: &Task, wait_ms: u64) -> u64 {
    let seed = u64::from(task.attempt);
    let hash =
        task.key.id.as_str().bytes().fold(seed, |hash, byte| hash.wrapping_mul(31).wrapping_add(u64::from(byte)));
    let less_ms_max = wait_ms / 2;
    wait_ms - hash % (less_ms_max + 1)
}
