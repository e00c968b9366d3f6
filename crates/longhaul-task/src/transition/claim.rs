use crate::{Change, NodeId, Phase, Refused, Run, Task, Timestamp};

/// A worker takes a queued task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The worker's node.
    pub node: NodeId,
}

pub(super) fn apply(task: &Task, event: &Claim, now: Timestamp) -> Result<Change, Refused> {
    task.must_be_open()?;
    let Phase::Queued { not_before } = task.phase else {
        return Err(Refused::WrongPhase(task.phase.name()));
    };
    if now < not_before {
        return Err(Refused::TooEarly);
    }
    let mut next = task.touched(now);
    next.fence += 1;
    next.attempt += 1;
    next.phase = Phase::Running { run: Run { node: event.node, since: next.updated_at } };
    Ok(Change::of(next))
}
