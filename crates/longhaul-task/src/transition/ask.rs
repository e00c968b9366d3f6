use std::sync::Arc;

use crate::event::{Note, Place, Record};
use crate::{
    Change, Json, LABEL_BYTES_MAX, Meanwhile, Phase, QUESTIONS_OPEN_MAX, Question, QuestionKey, QuestionKind,
    Questions, Refused, Task, Timestamp,
};

/// The attempt asks its requestor something. A question that is open at that place, from an attempt that this one
/// resumes, is not asked again; one that was answered is on record, which the store looks at.
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
    if let Some(open) = task.phase.questions().and_then(|open| open.at(&event.place)) {
        let same = open.digest == event.digest && open.key.label() == &*event.label;
        return Err(if same {
            Refused::AskedAlready(open.key.clone())
        } else {
            Refused::Changed(open.key.label().into())
        });
    }
    let Some(run) = task.phase.run() else { return Err(Refused::Fenced) };
    let mut next = task.touched(now);
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
        Some(open) => open.clone().and(question),
        None => Questions::one(question),
    };
    next.phase = Phase::Waiting { meanwhile: Meanwhile::Held(run), questions };
    let record = Record { place: event.place.clone(), key: event.label.clone(), digest: event.digest, output: None };
    let mut change = Change::of(next);
    change.note = Some(Note::Asked { key, record });
    Ok(change)
}

/// Why a question is not asked: its place on record is taken, by what stands there and by which question if it is one.
pub fn asked_before(stands: &Record, question: Option<&QuestionKey>, asks: &Record) -> Refused {
    match question {
        Some(key) if stands.key == asks.key && stands.digest == asks.digest => Refused::AskedAlready(key.clone()),
        _ => Refused::Changed(stands.key.clone()),
    }
}

fn is_label(label: &str) -> bool {
    (1..=LABEL_BYTES_MAX).contains(&label.len())
        && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
}
