use crate::{Change, Outcome, Surroundings, Task, Timestamp, TransitionError};

/// The attempt ends the task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settle {
    pub fence: u64,
    pub outcome: Outcome,
}

pub(super) fn apply(
    task: &Task,
    event: &Settle,
    surroundings: &Surroundings,
    now: Timestamp,
) -> Result<Change, TransitionError> {
    task.check_fence(event.fence)?;
    match surroundings.open_children {
        0 => {
            let mut change = super::end(task, event.outcome.clone(), now);
            super::wake_parent(&mut change, surroundings, now);
            Ok(change)
        }
        open => Err(TransitionError::ChildrenOpen(open)),
    }
}
