use crate::{ActiveAttempt, Change, NodeId, Phase, Task, Timestamp, TransitionError};

/// A worker claims a queued task. Its open questions stay open, because the resumed handler asks them again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    pub node: NodeId,
}

pub(super) fn apply(task: &Task, event: &Claim, now: Timestamp) -> Result<Change, TransitionError> {
    task.ensure_open()?;
    let Some(not_before) = task.phase.not_before() else {
        return Err(TransitionError::WrongPhase(task.phase.name()));
    };
    if now < not_before {
        return Err(TransitionError::TooEarly);
    }
    let mut next = task.next_revision(now);
    next.fence += 1;
    next.attempt += 1;
    let run = ActiveAttempt::claimed(event.node, now);
    next.phase = Phase::held(run, task.phase.questions().cloned());
    Ok(Change::new(next))
}
