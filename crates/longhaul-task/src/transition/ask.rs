use std::sync::Arc;

use crate::event::{JournalEntry, JournalPosition, JournalWrite};
use crate::{
    Change, Json, LABEL_BYTES_MAX, Phase, QUESTIONS_OPEN_MAX, Question, QuestionKey, QuestionKind, Questions, Task,
    Timestamp, TransitionError, WaitingState,
};

/// The attempt asks its requestor a question. If an earlier attempt asked it at the same position and it is open, the
/// event is refused with its key. If it was answered, it is in the journal, which the store reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskQuestion {
    pub fence: u64,
    /// The handler's name for the question. The key is made from it.
    pub label: Arc<str>,
    pub kind: QuestionKind,
    pub params: Json,
    pub position: JournalPosition,
    pub digest: u64,
}

pub(super) fn apply(task: &Task, event: &AskQuestion, now: Timestamp) -> Result<Change, TransitionError> {
    task.check_fence(event.fence)?;
    if !is_label(&event.label) {
        return Err(TransitionError::BadLabel);
    }
    if let Some(open) = task.phase.questions().and_then(|open| open.at(&event.position)) {
        let same = open.digest == event.digest && open.key.label() == &*event.label;
        return Err(if same {
            TransitionError::AskedAlready(open.key.clone())
        } else {
            TransitionError::HandlerChanged(open.key.label().into())
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
    };
    let questions = match task.phase.questions() {
        Some(open) if open.count() >= QUESTIONS_OPEN_MAX => return Err(TransitionError::TooManyQuestions),
        Some(open) => open.clone().with(question),
        None => Questions::one(question),
    };
    next.phase = Phase::Waiting { state: WaitingState::Held(run), questions };
    let record =
        JournalEntry { position: event.position.clone(), key: event.label.clone(), digest: event.digest, output: None };
    let mut change = Change::new(next);
    change.journal_write = Some(JournalWrite::Asked { key, record });
    Ok(change)
}

/// The reason to refuse a question whose position in the journal already holds the entry `recorded`; `question` is the
/// key if that entry is a question.
pub fn entry_conflict(
    recorded: &JournalEntry,
    question: Option<&QuestionKey>,
    asked: &JournalEntry,
) -> TransitionError {
    match question {
        Some(key) if recorded.key == asked.key && recorded.digest == asked.digest => {
            TransitionError::AskedAlready(key.clone())
        }
        _ => TransitionError::HandlerChanged(recorded.key.clone()),
    }
}

fn is_label(label: &str) -> bool {
    (1..=LABEL_BYTES_MAX).contains(&label.len())
        && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
}
