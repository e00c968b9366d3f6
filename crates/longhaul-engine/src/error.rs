//! Why the engine, or a handler's context, said no.

use std::sync::Arc;

use longhaul_store::StoreError;
use longhaul_task::{Json, QuestionKind, TaskError, TransitionError};

/// Why the engine did not take a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// No such tool is registered.
    #[error("there is no tool {0:?}")]
    NoSuchTool(Arc<str>),
    /// The arguments are larger than the tool takes.
    #[error("the arguments have {bytes} bytes; this tool takes at most {bytes_max}")]
    InputTooLarge { bytes: usize, bytes_max: usize },
    /// The tool's queue is full, or the owner has used up its part of it.
    #[error("you have used up your part of this tool's queue ({queued_max} tasks for all callers); try again later")]
    QueueFull { queued_max: usize },
    /// The owner has used up its part of the ordinary calls of a tool.
    #[error(
        "you have used up your part of the calls of this tool ({calls_max} at once for all callers); try again in a moment"
    )]
    TooManyCalls { calls_max: usize },
    /// The owner has too many open tasks.
    #[error("you have {open_max} tasks that have not ended; wait for some of them or cancel them")]
    TooManyOpen {
        /// How many an owner may have.
        open_max: usize,
    },
    /// The server is going down.
    #[error("the server is shutting down; try again in a moment")]
    Draining,
    /// The store did not do it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl EngineError {
    /// A word that scripts can rely on.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoSuchTool(_) => "NO_SUCH_TOOL",
            Self::InputTooLarge { .. } => "INPUT_TOO_LARGE",
            Self::QueueFull { .. } => "QUEUE_FULL",
            Self::TooManyCalls { .. } => "TOO_MANY_CALLS",
            Self::TooManyOpen { .. } => "TOO_MANY_OPEN",
            Self::Draining => "DRAINING",
            Self::Store(error) => error.code(),
        }
    }
}

/// Why a handler cannot go on. A handler passes it up with `?`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CtxError {
    /// The task was cancelled, or another attempt has taken it over. Whatever this attempt returns is ignored.
    #[error("the task was cancelled")]
    Cancelled,
    /// The client of an ordinary call has not declared that it can answer such a question. Ask
    /// [`Ctx::can_ask`](crate::Ctx::can_ask) first, or let clients call the tool as a task.
    #[error(
        "the question {label:?} cannot be asked, because the client has not declared that it can answer it; call the \
         tool from a client that can, or as a task, whose questions can be answered from another client"
    )]
    CannotAsk { kind: QuestionKind, label: Arc<str>, params: Json },
    /// The handler did something that the machine does not allow.
    #[error(transparent)]
    Refused(TransitionError),
    /// The answer was not what was asked for.
    #[error("the answer does not fit the question: {0}")]
    BadAnswer(String),
    /// The client was asked, and refused or could not.
    #[error("the client did not answer: {0}")]
    NotAnswered(String),
    /// The store did not do it.
    #[error(transparent)]
    Store(StoreError),
}

impl From<StoreError> for CtxError {
    fn from(error: StoreError) -> Self {
        match error {
            // The attempt is void, by whatever way it became so.
            StoreError::NotFound | StoreError::Refused(TransitionError::Settled | TransitionError::Fenced) => {
                Self::Cancelled
            }
            StoreError::Refused(refused) => Self::Refused(refused),
            other => Self::Store(other),
        }
    }
}

impl CtxError {
    /// A word that scripts can rely on.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Cancelled => "CANCELLED",
            Self::CannotAsk { .. } => "CANNOT_ASK",
            Self::Refused(_) => "REFUSED",
            Self::BadAnswer(_) => "BAD_ANSWER",
            Self::NotAnswered(_) => "NOT_ANSWERED",
            Self::Store(error) => error.code(),
        }
    }

    /// The error of a task whose handler ends with this.
    pub fn task_error(&self) -> TaskError {
        TaskError::with_code(self.code(), self.to_string())
    }
}
