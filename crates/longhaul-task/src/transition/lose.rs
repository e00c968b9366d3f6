use super::release::requeue;
use crate::{Change, Fault, NodeId, OnCrash, Outcome, Refused, Surroundings, Task, Timestamp};

/// The node that had the task is dead. What happens next is the tool's choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lose {
    /// The dead node: the event is refused when another one has the task by now.
    pub node: NodeId,
}

pub(super) fn apply(task: &Task, event: &Lose, around: &Surroundings, now: Timestamp) -> Result<Change, Refused> {
    task.must_be_open()?;
    match task.phase.run() {
        Some(run) if run.node == event.node => {}
        Some(_) => return Err(Refused::Fenced),
        None => return Err(Refused::WrongPhase(task.phase.name())),
    }
    let again = match task.policy.on_crash {
        OnCrash::Fail => false,
        OnCrash::Retry | OnCrash::Resume => task.attempt < task.policy.attempts_max,
    };
    Ok(if again {
        requeue(task, task.policy.backoff_after_ms(task.attempt), now)
    } else {
        super::end_family(task, Outcome::Refusal(Fault::crash_recovery(task.attempt)), around, now)
    })
}
