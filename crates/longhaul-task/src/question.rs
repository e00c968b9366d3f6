//! Questions that a task puts to its requestor.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Json, Place, Timestamp};

/// The longest label of a question, in bytes.
pub const LABEL_BYTES_MAX: usize = 64;

/// How many questions a task may have open at once.
pub const QUESTIONS_OPEN_MAX: usize = 64;

/// The name of one question, never used twice in a task's life: the machine makes it from the handler's label and a
/// counter, so no caller can get it wrong.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct QuestionKey(Arc<str>);

impl QuestionKey {
    pub(crate) fn make(label: &str, ordinal: u32) -> Self {
        Self(format!("{label}-{ordinal}").into())
    }

    /// What the handler called it.
    pub fn label(&self) -> &str {
        self.0.rsplit_once('-').map_or(&*self.0, |(label, _)| label)
    }

    /// The key that a requestor sent; it matches an open question or it does not.
    pub fn from_text(text: &str) -> Self {
        Self(text.into())
    }

    /// The key as text.
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

/// What kind of thing is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionKind {
    /// Something the user fills in.
    Elicitation,
    /// Something the client's model says.
    Sampling,
    /// The folders the client works in.
    Roots,
}

/// One open question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// Its name in this task.
    pub key: QuestionKey,
    /// What kind of thing is asked for.
    pub kind: QuestionKind,
    /// The request's parameters, as they will be sent.
    pub params: Json,
    /// When it was asked.
    pub asked_at: Timestamp,
    /// Where the handler asked it, so that a resumed one finds it again.
    pub place: Place,
    /// A digest of what was asked, so that a handler that has changed is noticed.
    pub digest: u64,
}

/// The open questions of a waiting task, in the order they were asked: at least one, or the task would not wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Questions(Vec<Question>);

impl Questions {
    /// The questions, unless there are none.
    pub fn new(open: Vec<Question>) -> Option<Self> {
        (!open.is_empty()).then_some(Self(open))
    }

    /// A task's first question.
    pub fn one(question: Question) -> Self {
        Self(vec![question])
    }

    /// All of them, oldest first.
    pub fn iter(&self) -> std::slice::Iter<'_, Question> {
        self.0.iter()
    }

    /// How many are open. Never zero.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The question of that key, if it is open.
    pub fn find(&self, key: &QuestionKey) -> Option<&Question> {
        self.0.iter().find(|question| question.key == *key)
    }

    /// The question that was asked there, if it is open.
    pub fn at(&self, place: &Place) -> Option<&Question> {
        self.0.iter().find(|question| question.place == *place)
    }

    pub(crate) fn and(mut self, question: Question) -> Self {
        self.0.push(question);
        self
    }

    /// The others, once that one is answered; `None` when it was the last.
    pub(crate) fn without(&self, key: &QuestionKey) -> Option<Self> {
        Self::new(self.0.iter().filter(|question| question.key != *key).cloned().collect())
    }
}

impl<'a> IntoIterator for &'a Questions {
    type Item = &'a Question;
    type IntoIter = std::slice::Iter<'a, Question>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
