use super::release::requeue;
use crate::{Change, NodeId, OnCrash, Outcome, Surroundings, Task, TaskError, Timestamp, TransitionError};

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
    let may_run_again = task.policy.on_crash != OnCrash::Fail && task.has_attempts_left();
    Ok(if may_run_again {
        requeue(task, task.policy.backoff_after_ms(task.failed_attempts.saturating_add(1)), surroundings, now)
    } else {
        super::end_family(task, Outcome::Error(TaskError::crash_recovery(task)), surroundings, now)
    })
}
