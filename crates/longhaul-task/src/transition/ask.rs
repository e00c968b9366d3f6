use std::sync::Arc;

use crate::event::{Note, Place, Record};
use crate::{
    Change, Json, LABEL_BYTES_MAX, Phase, QUESTIONS_OPEN_MAX, Question, QuestionKey, QuestionKind, Questions, Refused,
    Task, Timestamp,
};

/// The attempt asks its requestor something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// The attempt's fence.
    pub fence: u64,
    /// What the handler calls it; the key is made from this.
    pub label: Arc<str>,
    /// What kind of thing is asked for.
    pub kind: QuestionKind,
    /// The request's parameters.
    pub params: Json,
    /// Where the handler asks.
    pub place: Place,
    /// A digest of the question.
    pub digest: u64,
}

pub(super) fn apply(task: &Task, event: &Ask, now: Timestamp) -> Result<Change, Refused> {
    task.must_hold(event.fence)?;
    if !is_label(&event.label) {
        return Err(Refused::BadLabel);
    }
    let mut next = task.touched(now);
    next.questions_asked += 1;
    let key = QuestionKey::make(&event.label, next.questions_asked);
    let question =
        Question { key: key.clone(), kind: event.kind, params: event.params.clone(), asked_at: next.updated_at };
    let run = task.phase.run();
    let questions = match task.phase.questions() {
        Some(open) if open.count() >= QUESTIONS_OPEN_MAX => return Err(Refused::TooManyQuestions),
        Some(open) => open.clone().and(question),
        None => Questions::one(question),
    };
    next.phase = Phase::Waiting { run, questions };
    let record = Record { place: event.place.clone(), key: event.label.clone(), digest: event.digest, output: None };
    let mut change = Change::of(next);
    change.note = Some(Note::Asked { key, record });
    Ok(change)
}

fn is_label(label: &str) -> bool {
    (1..=LABEL_BYTES_MAX).contains(&label.len())
        && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
}
