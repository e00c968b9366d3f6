use std::sync::Arc;

use super::answer;
use crate::{Answer, Change, JournalEntry, JournalWrite, Task, Timestamp, TransitionError};

/// The attempt gives up forks of its handler because a race has another winner. The open questions of these forks are
/// closed, and the entry of the race is written in the same commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Abandon {
    pub fence: u64,
    /// The forks that have lost, each as in [`JournalPosition::fork`](crate::JournalPosition::fork).
    pub forks: Vec<Arc<str>>,
    pub race: JournalEntry,
}

pub(super) fn apply(task: &Task, event: &Abandon, now: Timestamp) -> Result<Change, TransitionError> {
    task.check_fence(event.fence)?;
    let is_abandoned = |question: &crate::Question| event.forks.iter().any(|fork| question.position.is_in_fork(fork));
    let mut change = Change::new(task.next_revision(now));
    change.journal.push(JournalWrite::Insert(event.race.clone().written_by(task, now)));
    for question in task.phase.questions().into_iter().flatten().filter(|question| is_abandoned(question)) {
        let answer = Answer::NotGiven("the handler no longer needs the answer".into());
        change.journal.push(JournalWrite::Answer { key: question.key.clone(), answer, at: now });
        answer::close(&mut change, &question.key, now);
    }
    Ok(change)
}
