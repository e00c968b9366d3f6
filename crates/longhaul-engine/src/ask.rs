//! What a handler can ask its requestor.

use longhaul_task::{Json, QuestionKind};

use crate::CtxError;

/// A question with a typed answer. The crate `longhaul` implements it for the questions of the protocol.
pub trait Ask: Send {
    type Answer;

    fn kind(&self) -> QuestionKind;

    /// The parameters of the request to the client.
    fn params(&self) -> Json;

    /// Converts an answer that has already been checked against the question.
    fn read(&self, answer: &Json) -> Result<Self::Answer, CtxError>;
}

/// A digest of a question. It is stored, so it must be the same on every machine and in every version.
pub(crate) fn digest(kind: QuestionKind, params: &Json) -> u64 {
    let seed = match kind {
        QuestionKind::Elicitation => 1,
        QuestionKind::Sampling => 2,
        QuestionKind::Roots => 3,
    };
    xxhash_rust::xxh3::xxh3_64_with_seed(params.as_str().as_bytes(), seed)
}
