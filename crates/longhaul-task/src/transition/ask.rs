use std::sync::Arc;

use crate::{
    Answer, Change, EntryKind, EntryState, JournalEntry, JournalPosition, JournalWrite, Json, Phase,
    QUESTIONS_OPEN_MAX, Question, QuestionDeadline, QuestionKey, QuestionKind, Questions, Task, Timestamp,
    TransitionError, Wait, WaitingState,
};

/// The attempt asks its requestor a question. If a question was asked at the same position before, the event is refused with
/// the key of that question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskQuestion {
    pub fence: u64,
    /// The handler's name for the question. The key is made from it.
    pub label: Arc<str>,
    pub kind: QuestionKind,
    pub params: Json,
    pub position: JournalPosition,
    pub digest: u64,
    /// The number of milliseconds after which the question is closed, and what the handler gets then.
    pub time_limit: Option<(u64, Answer)>,
}

pub(super) fn apply(task: &Task, event: &AskQuestion, now: Timestamp) -> Result<Change, TransitionError> {
    task.check_fence(event.fence)?;
    if !QuestionKey::is_label(&event.label) {
        return Err(TransitionError::BadLabel);
    }
    if let Some(open) = task.phase.questions().and_then(|open| open.at(&event.position)) {
        return Err(if open.key.label() == &*event.label {
            TransitionError::AskedAlready(open.key.clone())
        } else {
            TransitionError::HandlerChanged {
                recorded: crate::describe(EntryKind::Question, open.key.label()),
                performed: crate::describe(EntryKind::Question, &event.label),
            }
        });
    }
    let Some(run) = task.phase.active_attempt() else { return Err(TransitionError::Fenced) };
    let mut next = task.next_revision(now);
    next.questions_asked += 1;
    let key = QuestionKey::make(&event.label, next.questions_asked);
    let question = Question {
        key: key.clone(),
        kind: event.kind,
        params: event.params.clone(),
        asked_at: next.updated_at,
        position: event.position.clone(),
        digest: event.digest,
        deadline: event
            .time_limit
            .clone()
            .map(|(limit_ms, default)| QuestionDeadline { wait: Wait::of_ms(now, limit_ms), default }),
    };
    let questions = match task.phase.questions() {
        Some(open) if open.count() >= QUESTIONS_OPEN_MAX => return Err(TransitionError::TooManyQuestions),
        Some(open) => open.clone().with(question),
        None => Questions::one(question),
    };
    next.phase = Phase::Waiting { state: WaitingState::Held(run), questions };
    let entry = JournalEntry::new(
        event.position.clone(),
        EntryKind::Question,
        event.label.clone(),
        event.digest,
        EntryState::Open,
    );
    let mut change = Change::new(next);
    let entry = JournalEntry { question: Some(key), ..entry }.written_by(task, now);
    change.journal.push(JournalWrite::Insert(entry));
    Ok(change)
}
