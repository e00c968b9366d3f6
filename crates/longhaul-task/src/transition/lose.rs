use super::release::requeue;
use crate::{Change, Fault, NodeId, OnCrash, Outcome, Refused, Surroundings, Task, Timestamp};

/// The node that had the task is dead. What happens next is the tool's choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lose {
    /// The dead node: the event is refused when another one has the task by now.
    pub node: NodeId,
    /// The attempt that somebody saw there: the event is refused when the node has a newer one by now.
    pub fence: u64,
}

pub(super) fn apply(task: &Task, event: &Lose, around: &Surroundings, now: Timestamp) -> Result<Change, Refused> {
    task.must_be_open()?;
    match task.phase.run() {
        Some(run) if run.node == event.node && task.fence == event.fence => {}
        Some(_) => return Err(Refused::Fenced),
        None => return Err(Refused::WrongPhase(task.phase.name())),
    }
    let again = task.policy.on_crash != OnCrash::Fail && task.has_attempts_left();
    Ok(if again {
        requeue(task, task.policy.backoff_after_ms(task.spent.saturating_add(1)), around, now)
    } else {
        super::end_family(task, Outcome::Refusal(Fault::crash_recovery(task)), around, now)
    })
}
