use std::sync::Arc;

use crate::event::{Note, Place, Record};
use crate::{
    Change, Json, LABEL_BYTES_MAX, Meanwhile, Phase, QUESTIONS_OPEN_MAX, Question, QuestionKey, QuestionKind,
    Questions, Refused, Task, Timestamp,
};

/// The attempt asks its requestor a question. If an earlier attempt asked it at the same position and it is open, the
/// event is refused with its key. If it was answered, it is in the journal, which the store reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    pub fence: u64,
    /// The handler's name for the question. The key is made from it.
    pub label: Arc<str>,
    pub kind: QuestionKind,
    pub params: Json,
    pub place: Place,
    pub digest: u64,
}

pub(super) fn apply(task: &Task, event: &Ask, now: Timestamp) -> Result<Change, Refused> {
    task.must_hold(event.fence)?;
    if !is_label(&event.label) {
        return Err(Refused::BadLabel);
    }
    if let Some(open) = task.phase.questions().and_then(|open| open.at(&event.place)) {
        let same = open.digest == event.digest && open.key.label() == &*event.label;
        return Err(if same {
            Refused::AskedAlready(open.key.clone())
        } else {
            Refused::Changed(open.key.label().into())
        });
    }
    let Some(run) = task.phase.run() else { return Err(Refused::Fenced) };
    let mut next = task.next_revision(now);
    next.questions_asked += 1;
    let key = QuestionKey::make(&event.label, next.questions_asked);
    let question = Question {
        key: key.clone(),
        kind: event.kind,
        params: event.params.clone(),
        asked_at: next.updated_at,
        place: event.place.clone(),
        digest: event.digest,
    };
    let questions = match task.phase.questions() {
        Some(open) if open.count() >= QUESTIONS_OPEN_MAX => return Err(Refused::TooManyQuestions),
        Some(open) => open.clone().with(question),
        None => Questions::one(question),
    };
    next.phase = Phase::Waiting { meanwhile: Meanwhile::Held(run), questions };
    let record = Record { place: event.place.clone(), key: event.label.clone(), digest: event.digest, output: None };
    let mut change = Change::new(next);
    change.note = Some(Note::Asked { key, record });
    Ok(change)
}

/// The reason to refuse a question whose position in the journal already holds the entry `recorded`; `question` is the
/// key if that entry is a question.
pub fn asked_before(recorded: &Record, question: Option<&QuestionKey>, asked: &Record) -> Refused {
    match question {
        Some(key) if recorded.key == asked.key && recorded.digest == asked.digest => Refused::AskedAlready(key.clone()),
        _ => Refused::Changed(recorded.key.clone()),
    }
}

fn is_label(label: &str) -> bool {
    (1..=LABEL_BYTES_MAX).contains(&label.len())
        && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
}
