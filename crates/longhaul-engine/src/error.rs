//! The errors of the engine and of a handler's context.

use std::sync::Arc;

use longhaul_store::StoreError;
use longhaul_task::{ENTRY_NAME_BYTES_MAX, Json, Outcome, QuestionKind, TaskError, ToolRef, TransitionError};

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
    /// A tool cannot be replaced by another version of it while it has tasks.
    #[error("{0} still has tasks, so another version cannot take its place; wait until they have ended, or restart")]
    ToolBusy(ToolRef),
    /// An answer does not fit its question. Nothing was stored.
    #[error("The answer to `{key}` does not fit: {reason}")]
    BadAnswer { key: Arc<str>, reason: String },
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
            Self::ToolBusy(_) => "TOOL_BUSY",
            Self::BadAnswer { .. } => "BAD_ANSWER",
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
    /// A step has failed for good. With `?` it becomes a tool error with this message.
    #[error("the step {name:?} failed: {message}")]
    StepFailed {
        name: Arc<str>,
        message: Arc<str>,
        /// Whether another attempt of the task would get the same failure, because it is recorded or
        /// [permanent](crate::Failure::permanent).
        is_final: bool,
    },
    /// The handler did something that the state machine of the task refuses.
    #[error(transparent)]
    Refused(TransitionError),
    #[error("the name of an operation must have 1 to {ENTRY_NAME_BYTES_MAX} bytes")]
    BadName,
    /// Two forks of one context have the same key, or a key is not valid.
    #[error("the fork {key:?} cannot be made: {reason}")]
    BadFork { key: Arc<str>, reason: &'static str },
    /// The output of an operation is larger than its tool allows.
    #[error(
        "{operation} has {bytes} bytes to record; this tool records at most {bytes_max} for one operation; record a reference \
         to the data instead"
    )]
    StepTooLarge { operation: Arc<str>, bytes: usize, bytes_max: usize },
    /// The journal of the task is full.
    #[error(
        "the journal of this task is full: it takes {entries_max} entries and {bytes_max} bytes; split the work into subtasks"
    )]
    JournalFull { entries_max: usize, bytes_max: usize },
    /// The handler cannot read the output that the journal has at this position.
    #[error("what was recorded does not fit the type that the handler expects: {cause}")]
    BadRecord { cause: String },
    /// The handler ends its task with this outcome, and another attempt would end in the same way.
    #[error("the tool failed for good")]
    Final(Box<Outcome>),
    /// A subtask could not be created.
    #[error("the subtask {tool:?} cannot be created: {reason}")]
    BadSubtask { tool: Arc<str>, reason: String },
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

impl From<TransitionError> for CtxError {
    fn from(refused: TransitionError) -> Self {
        StoreError::Refused(refused).into()
    }
}

impl From<StoreError> for CtxError {
    fn from(error: StoreError) -> Self {
        match error {
            // In each of these cases the attempt has lost its task.
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
            Self::StepFailed { .. } => "STEP_FAILED",
            Self::Refused(TransitionError::HandlerChanged { .. }) => "HANDLER_CHANGED",
            Self::Refused(_) => "REFUSED",
            Self::BadName => "BAD_NAME",
            Self::BadFork { .. } => "BAD_FORK",
            Self::StepTooLarge { .. } => "STEP_TOO_LARGE",
            Self::JournalFull { .. } => "JOURNAL_FULL",
            Self::BadRecord { .. } => "BAD_RECORD",
            Self::BadSubtask { .. } => "BAD_SUBTASK",
            Self::Final(_) => "FINAL",
            Self::BadAnswer(_) => "BAD_ANSWER",
            Self::NotAnswered(_) => "NOT_ANSWERED",
            Self::Store(error) => error.code(),
        }
    }

    /// The error of a task whose handler returns this error.
    pub fn task_error(&self) -> TaskError {
        TaskError::with_code(self.code(), self.to_string())
    }
}
