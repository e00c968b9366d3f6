use crate::event::Note;
use crate::{Change, Effect, Json, Meanwhile, Phase, QuestionKey, Refused, Run, Task, Timestamp};

/// The requestor answers a question. The caller has checked the answer against the question's schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub key: QuestionKey,
    pub body: Json,
}

pub(super) fn apply(task: &Task, event: &Answer, now: Timestamp) -> Result<Change, Refused> {
    task.ensure_open()?;
    let Phase::Waiting { meanwhile, questions } = &task.phase else {
        return Err(Refused::NoSuchQuestion);
    };
    if questions.find(&event.key).is_none() {
        return Err(Refused::NoSuchQuestion);
    }
    let mut next = task.next_revision(now);
    let since = next.updated_at;
    let (open, mut queued) = (questions.without(&event.key), None);
    next.phase = match *meanwhile {
        Meanwhile::Held(run) if open.is_none() => Phase::Running { run: Run { since, ..run } },
        Meanwhile::Held(run) => Phase::held(run, open),
        // The fork that asked can continue, even if the other forks still wait.
        Meanwhile::Parked(_) => {
            queued = Some(Effect::queued(task, since));
            Phase::queued(since, open)
        }
        Meanwhile::Queued { not_before } => Phase::queued(not_before, open),
    };
    let mut change = Change::new(next);
    change.note = Some(Note::Answered { key: event.key.clone(), body: event.body.clone() });
    change.effects.extend(queued);
    Ok(change)
}
