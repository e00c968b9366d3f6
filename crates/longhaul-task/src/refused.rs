//! Why the machine said no.

use crate::{CHILDREN_MAX, DEPTH_MAX, LABEL_BYTES_MAX, PhaseName, QUESTIONS_OPEN_MAX, QuestionKey};

/// Why an event was refused. A refused event changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The task has ended, and terminal is final.
    #[error("the task has already ended")]
    Settled,
    /// Somebody else has the right to write for this task now.
    #[error("another attempt has taken over this task")]
    Fenced,
    /// It is not where this event could happen.
    #[error("a task that is {} cannot do this", .0.as_str())]
    WrongPhase(PhaseName),
    /// Its time has not come.
    #[error("it is too early for this")]
    TooEarly,
    /// No question of that key is open.
    #[error("no such question is open")]
    NoSuchQuestion,
    /// The label cannot become a key.
    #[error("a question's label has 1 to {LABEL_BYTES_MAX} letters, digits, `_`, `-` or `.`")]
    BadLabel,
    /// It asks too much at once.
    #[error("a task has at most {QUESTIONS_OPEN_MAX} open questions")]
    TooManyQuestions,
    /// The question was asked before, by an attempt that this one resumes: wait for the answer to this key, or find it
    /// on record.
    #[error("the question {0} was asked already")]
    AskedAlready(QuestionKey),
    /// A resumed handler does something else than before at the same place.
    #[error("the handler has changed: at this place it did {0:?} before")]
    Changed(std::sync::Arc<str>),
    /// Its children have not all ended.
    #[error("{0} of the task's children have not ended")]
    ChildrenOpen(u32),
    /// It has as many children as a task may have.
    #[error("a task has at most {CHILDREN_MAX} children")]
    TooManyChildren,
    /// The family would become too deep.
    #[error("a family is at most {DEPTH_MAX} levels deep")]
    TooDeep,
    /// Only a root stands for its family.
    #[error("only the root of a family can do this")]
    NotRoot,
    /// Only a handler that can resume may be dropped while it waits.
    #[error("only a tool that resumes can be parked")]
    NotResumable,
    /// Something that the attempt was going to wait for has come.
    #[error("what the task waits for has come meanwhile")]
    CameMeanwhile,
    /// Nothing would ever wake it.
    #[error("a task is parked only to wait for a time, a child or an answer")]
    NothingToWaitFor,
    /// Handing it back would be one attempt too many.
    #[error("the task has used up its attempts")]
    AttemptsSpent,
    /// The owner has a task of this ID already.
    #[error("a task of this ID exists already")]
    Duplicate,
}
