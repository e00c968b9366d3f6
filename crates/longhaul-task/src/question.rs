//! Questions that a task asks its requestor.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Answer, JournalPosition, Json, Timestamp, Wait};

/// The maximum length of a question's label, in bytes.
pub const LABEL_BYTES_MAX: usize = 64;

/// The maximum number of questions that a task may have open at the same time.
pub const QUESTIONS_OPEN_MAX: usize = 64;

/// The key of a question, unique in the task's life. The state machine makes it from the handler's label and a counter,
/// so that no caller can use a key twice.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct QuestionKey(Arc<str>);

impl QuestionKey {
    pub(crate) fn make(label: &str, ordinal: u32) -> Self {
        Self(format!("{label}-{ordinal}").into())
    }

    /// Whether a handler can give this label to a question.
    pub fn is_label(label: &str) -> bool {
        (1..=LABEL_BYTES_MAX).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
    }

    /// The label that the handler gave to the question.
    pub fn label(&self) -> &str {
        self.0.rsplit_once('-').map_or(&*self.0, |(label, _)| label)
    }

    /// A key that a requestor sent. It is not validated: it equals the key of an open question or it does not.
    pub fn from_text(text: &str) -> Self {
        Self(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for QuestionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

impl fmt::Display for QuestionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The kind of answer that a question asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionKind {
    /// Input from the user.
    Elicitation,
    /// A completion by the client's language model.
    Sampling,
    /// The folders that the client works in.
    Roots,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    pub key: QuestionKey,
    pub kind: QuestionKind,
    /// The parameters of the request exactly as they will be sent.
    pub params: Json,
    pub asked_at: Timestamp,
    /// The position in the journal at which the handler asked it. A resumed handler finds it there.
    pub position: JournalPosition,
    /// Digest of what was asked.
    pub digest: u64,
    /// When the question is closed if it has no answer. Without a deadline it stays open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<QuestionDeadline>,
}

/// The time until which a question can be answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionDeadline {
    pub wait: Wait,
    /// What the handler gets if there is no answer by then.
    pub default: Answer,
}

/// The open questions of a waiting task, in the order in which they were asked. Never empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Questions(Vec<Question>);

impl Questions {
    /// `None` if `open` is empty.
    pub fn new(open: Vec<Question>) -> Option<Self> {
        (!open.is_empty()).then_some(Self(open))
    }

    pub fn one(question: Question) -> Self {
        Self(vec![question])
    }

    pub fn iter(&self) -> std::slice::Iter<'_, Question> {
        self.0.iter()
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }

    pub fn find(&self, key: &QuestionKey) -> Option<&Question> {
        self.0.iter().find(|question| question.key == *key)
    }

    /// The open question that was asked at this position of the journal.
    pub fn at(&self, position: &JournalPosition) -> Option<&Question> {
        self.0.iter().find(|question| question.position == *position)
    }

    /// The earliest deadline of a question.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.0.iter().filter_map(|question| question.deadline.as_ref()).map(|deadline| deadline.wait.until).min()
    }

    /// The questions for a clock that shows `now`: a deadline that began later begins now.
    pub(crate) fn by_clock(&self, now: Timestamp) -> Self {
        let mut questions = self.clone();
        for deadline in questions.0.iter_mut().filter_map(|question| question.deadline.as_mut()) {
            deadline.wait = deadline.wait.by_clock(now);
        }
        questions
    }

    pub(crate) fn with(mut self, question: Question) -> Self {
        self.0.push(question);
        self
    }

    /// The questions for which `keep` is true. `None` if there is none.
    pub(crate) fn only(&self, keep: impl Fn(&Question) -> bool) -> Option<Self> {
        Self::new(self.0.iter().filter(|question| keep(question)).cloned().collect())
    }
}

impl<'a> IntoIterator for &'a Questions {
    type Item = &'a Question;
    type IntoIter = std::slice::Iter<'a, Question>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
