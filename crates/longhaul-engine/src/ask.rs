//! What a handler can ask its requestor.

use longhaul_task::{Json, QuestionKind};

use crate::CtxError;

/// A question with a typed answer. The facade has the ones that the protocol knows.
pub trait Ask: Send {
    /// What the handler gets back.
    type Answer;

    /// What kind of thing is asked for.
    fn kind(&self) -> QuestionKind;

    /// The request's parameters.
    fn params(&self) -> Json;

    /// Reads an answer. It was checked against the question before it was taken.
    fn read(&self, answer: &Json) -> Result<Self::Answer, CtxError>;
}

/// A digest of a question, the same on every machine and in every version.
pub(crate) fn digest(kind: QuestionKind, params: &Json) -> u64 {
    let kind = match kind {
        QuestionKind::Elicitation => 1,
        QuestionKind::Sampling => 2,
        QuestionKind::Roots => 3,
    };
    xxhash_rust::xxh3::xxh3_64_with_seed(params.as_str().as_bytes(), kind)
}
