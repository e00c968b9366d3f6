use crate::event::Note;
use crate::{Change, Effect, Json, Meanwhile, Phase, QuestionKey, Refused, Run, Task, Timestamp};

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
    let Phase::Waiting { meanwhile, questions } = &task.phase else {
        return Err(Refused::NoSuchQuestion);
    };
    if questions.find(&event.key).is_none() {
        return Err(Refused::NoSuchQuestion);
    }
    let mut next = task.touched(now);
    let since = next.updated_at;
    let (rest, mut woken) = (questions.without(&event.key), None);
    next.phase = match *meanwhile {
        Meanwhile::Held(run) if rest.is_none() => Phase::Running { run: Run { since, ..run } },
        Meanwhile::Held(run) => Phase::held(run, rest),
        // One branch of the handler can go on, whatever the others wait for.
        Meanwhile::Parked(_) => {
            woken = Some(Effect::queued(task, since));
            Phase::queued(since, rest)
        }
        Meanwhile::Queued { not_before } => Phase::queued(not_before, rest),
    };
    let mut change = Change::of(next);
    change.note = Some(Note::Answered { key: event.key.clone(), body: event.body.clone() });
    change.effects.extend(woken);
    Ok(change)
}
