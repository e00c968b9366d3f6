use crate::event::Note;
use crate::{Change, Effect, Json, Phase, QuestionKey, Refused, Run, Task, Timestamp};

/// The requestor answers one question. Whether the answer fits the question's schema was checked before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The question.
    pub key: QuestionKey,
    /// The answer.
    pub body: Json,
}

pub(super) fn apply(task: &Task, event: &Answer, now: Timestamp) -> Result<Change, Refused> {
    task.must_be_open()?;
    let Phase::Waiting { run, questions } = &task.phase else {
        return Err(Refused::NoSuchQuestion);
    };
    if questions.find(&event.key).is_none() {
        return Err(Refused::NoSuchQuestion);
    }
    let mut next = task.touched(now);
    let since = next.updated_at;
    next.phase = match (questions.without(&event.key), run) {
        (Some(questions), run) => Phase::Waiting { run: *run, questions },
        (None, Some(run)) => Phase::Running { run: Run { since, ..*run } },
        (None, None) => Phase::Queued { not_before: since },
    };
    let queued = matches!(next.phase, Phase::Queued { .. });
    let mut change = Change::of(next);
    change.note = Some(Note::Answered { key: event.key.clone(), body: event.body.clone() });
    Ok(if queued { change.with(Effect::Queued { not_before: since }) } else { change })
}
