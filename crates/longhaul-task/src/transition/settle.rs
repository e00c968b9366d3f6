use crate::{Change, JournalEntry, JournalWrite, Outcome, Surroundings, Task, Timestamp, TransitionError};

/// The attempt ends the task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settle {
    pub fence: u64,
    pub outcome: Outcome,
    /// Journal entries that are not written yet. They share the commit of the task's end.
    pub entries: Vec<JournalEntry>,
}

pub(super) fn apply(
    task: &Task,
    event: &Settle,
    surroundings: &Surroundings,
    now: Timestamp,
) -> Result<Change, TransitionError> {
    task.check_fence(event.fence)?;
    if !surroundings.open_children.is_empty() {
        return Err(TransitionError::ChildrenOpen);
    }
    let mut change = super::end(task, event.outcome.clone(), now);
    let entries = event.entries.iter().map(|entry| JournalWrite::Insert(entry.clone().written_by(task, now)));
    change.journal.extend(entries);
    super::wake_parent(&mut change, surroundings, now);
    Ok(change)
}
