//! Why the machine said no.

use crate::{CHILDREN_MAX, DEPTH_MAX, LABEL_BYTES_MAX, PhaseName, QUESTIONS_OPEN_MAX};

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
    /// No worker may take it yet.
    #[error("the task is not to be started yet")]
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
    /// The owner has a task of this ID already.
    #[error("a task of this ID exists already")]
    Duplicate,
}
