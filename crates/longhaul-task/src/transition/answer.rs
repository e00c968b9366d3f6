use crate::{
    ActiveAttempt, Answer, Change, Effect, JournalWrite, Phase, QuestionKey, Task, Timestamp, TransitionError, Wait,
    WaitingState,
};

/// The requestor answers a question. The caller has checked the answer against the question's schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerQuestion {
    pub key: QuestionKey,
    pub answer: Answer,
}

pub(super) fn apply(task: &Task, event: &AnswerQuestion, now: Timestamp) -> Result<Change, TransitionError> {
    task.ensure_open()?;
    if task.phase.questions().and_then(|open| open.find(&event.key)).is_none() {
        return Err(TransitionError::NoSuchQuestion);
    }
    let mut change = Change::new(task.next_revision(now));
    close(&mut change, &event.key, now);
    change.journal.push(JournalWrite::Answer { key: event.key.clone(), answer: event.answer.clone(), at: now });
    Ok(change)
}

/// Removes a question from the open ones. The fork that asked it can continue.
pub(super) fn close(change: &mut Change, key: &QuestionKey, now: Timestamp) {
    let Phase::Waiting { state, questions } = &change.task.phase else { return };
    let open = questions.only(|question| question.key != *key);
    let mut queued_effect = None;
    change.task.phase = match state {
        WaitingState::Held(run) if open.is_none() => Phase::Running { run: ActiveAttempt { since: now, ..*run } },
        WaitingState::Held(run) => Phase::held(*run, open),
        // The fork that asked can continue, even if the other forks still wait.
        WaitingState::Parked(_) => {
            queued_effect = Some(Effect::queued(&change.task, now));
            Phase::queued(Wait::until(now, now), open)
        }
        WaitingState::Queued { wait } => Phase::queued(*wait, open),
    };
    change.effects.extend(queued_effect);
}
