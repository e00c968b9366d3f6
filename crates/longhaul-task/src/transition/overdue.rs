use crate::{Change, Outcome, Phase, Surroundings, Task, TaskError, Timestamp, TransitionError};

/// The task has reached its deadline: its handler has run, or the task has existed, for as long as its tool allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overdue;

pub(super) fn apply(
    task: &Task,
    _event: &Overdue,
    surroundings: &Surroundings,
    now: Timestamp,
) -> Result<Change, TransitionError> {
    task.ensure_open()?;
    if task.deadline().is_none_or(|deadline| now < deadline) {
        return Err(TransitionError::TooEarly);
    }
    let fault = match task.phase {
        Phase::Running { .. } if !task.life_is_over(now) => TaskError::running_time(task.policy.running_ms_max),
        _ => TaskError::life_time(task.policy.life_ms_max),
    };
    Ok(super::end_family(task, Outcome::Error(fault), surroundings, now))
}
