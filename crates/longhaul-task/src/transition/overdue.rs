use crate::{Change, Fault, Outcome, Phase, Refused, Surroundings, Task, Timestamp};

/// The task has reached its deadline: its handler has run, or the task has existed, for as long as its tool allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overdue;

pub(super) fn apply(task: &Task, _event: &Overdue, around: &Surroundings, now: Timestamp) -> Result<Change, Refused> {
    task.ensure_open()?;
    if task.deadline().is_none_or(|deadline| now < deadline) {
        return Err(Refused::TooEarly);
    }
    let life_is_over = now >= task.created_at.plus_ms(task.policy.life_ms_max);
    let fault = match task.phase {
        Phase::Running { .. } if !life_is_over => Fault::running_time(task.policy.running_ms_max),
        _ => Fault::life_time(task.policy.life_ms_max),
    };
    Ok(super::end_family(task, Outcome::Refusal(fault), around, now))
}
