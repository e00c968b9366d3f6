//! The reasons for which an event is refused.

use crate::{CHILDREN_MAX, DEPTH_MAX, LABEL_BYTES_MAX, PhaseName, QUESTIONS_OPEN_MAX, QuestionKey};

/// Why an event was refused. A refused event changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransitionError {
    #[error("the task has already ended")]
    Settled,
    /// The fence is outdated: another attempt has the right to write, or none has.
    #[error("this attempt may no longer write: the task was cancelled, lost or claimed again")]
    Fenced,
    /// The event is not possible in this phase.
    #[error("this is not possible while the task is {}", .0.as_str())]
    WrongPhase(PhaseName),
    /// The claim, timer, deadline or expiry that the event is for has not been reached.
    #[error("the time for this has not been reached")]
    TooEarly,
    #[error("the task has no open question with this key")]
    NoSuchQuestion,
    #[error("a question's label must have 1 to {LABEL_BYTES_MAX} characters: ASCII letters, digits, `_`, `-` or `.`")]
    BadLabel,
    #[error("the task has {QUESTIONS_OPEN_MAX} open questions, which is the limit; wait for an answer first")]
    TooManyQuestions,
    /// The question was asked by an earlier attempt, which this one resumes. Wait for the answer to this key, or read
    /// it from the journal.
    #[error("an earlier attempt has asked this question already, with the key {0}")]
    AskedAlready(QuestionKey),
    /// A resumed handler makes another operation than the one in its journal at this position.
    #[error(
        "the handler has changed: its journal has {0:?} at this position; register the changed tool under a new version"
    )]
    HandlerChanged(std::sync::Arc<str>),
    #[error("{0} children of the task have not ended; wait for them or cancel them first")]
    ChildrenOpen(u32),
    #[error("the task has {CHILDREN_MAX} children, which is the limit")]
    TooManyChildren,
    #[error("the task is {DEPTH_MAX} levels below its root, which is the limit; it cannot have children")]
    TooDeep,
    /// The event is for a whole family, so it must be sent to its root.
    #[error("this is possible for the root of a family only, and the task has a parent")]
    NotRoot,
    /// The handler of a tool without `on_crash = resume` cannot be dropped while it waits.
    #[error("the task cannot be parked: its tool does not have `on_crash = resume`")]
    NotResumable,
    /// A child has ended or an answer has come since the attempt decided to wait.
    #[error("the task cannot be parked: what it was to wait for has already happened")]
    AlreadyHappened,
    /// Nothing would ever wake the task.
    #[error("the task cannot be parked: it waits for no time, no child and no answer")]
    NothingToWaitFor,
    #[error("the task has used all attempts that its tool allows")]
    AttemptsSpent,
    #[error("a task with this ID exists already; choose another ID")]
    DuplicateId,
}
