use super::answer;
use crate::{Change, JournalWrite, QuestionKey, Task, Timestamp, TransitionError};

/// The deadline of a question has passed. The question is closed, and its default becomes the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeOut {
    pub key: QuestionKey,
}

pub(super) fn apply(task: &Task, event: &TimeOut, now: Timestamp) -> Result<Change, TransitionError> {
    task.ensure_open()?;
    let question = task.phase.questions().and_then(|open| open.find(&event.key));
    let Some(deadline) = question.and_then(|question| question.deadline.as_ref()) else {
        return Err(TransitionError::NoSuchQuestion);
    };
    if now < deadline.wait.until {
        return Err(TransitionError::TooEarly);
    }
    let mut change = Change::new(task.next_revision(now));
    answer::close(&mut change, &event.key, now);
    let write = JournalWrite::Answer { key: event.key.clone(), answer: deadline.default.clone(), at: now };
    change.journal.push(write);
    Ok(change)
}
