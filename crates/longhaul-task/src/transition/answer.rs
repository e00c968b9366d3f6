use crate::event::JournalWrite;
use crate::{
    ActiveAttempt, Change, Effect, Json, Phase, QuestionKey, Task, Timestamp, TransitionError, Wait, WaitingState,
};

/// The requestor answers a question. The caller has checked the answer against the question's schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerQuestion {
    pub key: QuestionKey,
    pub body: Json,
}

pub(super) fn apply(task: &Task, event: &AnswerQuestion, now: Timestamp) -> Result<Change, TransitionError> {
    task.ensure_open()?;
    let Phase::Waiting { state, questions } = &task.phase else {
        return Err(TransitionError::NoSuchQuestion);
    };
    if questions.find(&event.key).is_none() {
        return Err(TransitionError::NoSuchQuestion);
    }
    let mut next = task.next_revision(now);
    let open = questions.without(&event.key);
    let mut queued_effect = None;
    next.phase = match *state {
        WaitingState::Held(run) if open.is_none() => Phase::Running { run: ActiveAttempt { since: now, ..run } },
        WaitingState::Held(run) => Phase::held(run, open),
        // The fork that asked can continue, even if the other forks still wait.
        WaitingState::Parked(_) => {
            queued_effect = Some(Effect::queued(task, now));
            Phase::queued(Wait::until(now, now), open)
        }
        WaitingState::Queued { wait } => Phase::queued(wait, open),
    };
    let mut change = Change::new(next);
    change.journal_write = Some(JournalWrite::Answered { key: event.key.clone(), body: event.body.clone() });
    change.effects.extend(queued_effect);
    Ok(change)
}
