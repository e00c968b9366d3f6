//! The reasons for which an event is refused.

use crate::{CHILD_RANGES_MAX, CHILDREN_MAX, DEPTH_MAX, LABEL_BYTES_MAX, PhaseName, QUESTIONS_OPEN_MAX, QuestionKey};

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
    /// The task may not yet be claimed, woken, ended as overdue or expired.
    #[error("the time for this has not been reached")]
    TooEarly,
    #[error("the task has no open question with this key")]
    NoSuchQuestion,
    #[error("a question's label must have 1 to {LABEL_BYTES_MAX} characters: ASCII letters, digits, `_`, `-` or `.`")]
    BadLabel,
    #[error("the task has {QUESTIONS_OPEN_MAX} open questions, which is the limit; wait for an answer first")]
    TooManyQuestions,
    /// The question was asked before, by an earlier attempt or by a commit whose response was lost. Wait for the answer under
    /// this key, or read it from the journal.
    #[error("this question was asked before, with the key {0}")]
    AskedAlready(QuestionKey),
    /// A resumed handler performs another operation than the one that its journal has at this position.
    #[error(
        "the handler has changed: its journal has {recorded} where it now performs {performed}; register the changed tool \
         under a new version"
    )]
    HandlerChanged { recorded: std::sync::Arc<str>, performed: std::sync::Arc<str> },
    #[error("children of the task have not ended; wait for them or cancel them first")]
    ChildrenOpen,
    #[error("the task has {CHILDREN_MAX} children, which is the limit")]
    TooManyChildren,
    #[error("the task is {DEPTH_MAX} levels below its root, which is the limit; it cannot have children")]
    TooDeep,
    /// The event is for a whole family, so it must be applied to the root.
    #[error("only the root of a family can be deleted, and this task has a parent")]
    NotRoot,
    /// The handler of a tool without `on_crash = resume` cannot be dropped while it waits.
    #[error("the task cannot be parked: its tool does not have `on_crash = resume`")]
    NotResumable,
    /// A child has ended or an answer has arrived after the attempt decided to wait for it.
    #[error("the task cannot be parked: a child has ended or an answer has arrived meanwhile")]
    AlreadyHappened,
    #[error("the task cannot be parked: more than {CHILD_RANGES_MAX} of its forks wait for children")]
    TooManyWaits,
    /// Nothing would ever wake the task.
    #[error("the task cannot be parked: it waits for no time, no child and no answer")]
    NothingToWaitFor,
    #[error("the task has used all attempts that its tool allows")]
    AttemptsSpent,
    #[error("the clock has not gone back since the task began to wait")]
    NothingToShorten,
    #[error("a task with this ID exists already; choose another ID")]
    DuplicateId,
}
