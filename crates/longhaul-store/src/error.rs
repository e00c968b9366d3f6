use longhaul_task::TransitionError;

/// Why an operation of a store failed. The variants differ in what the caller can do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The owner has no task with this ID. The error does not tell whether the task never existed, was deleted or
    /// belongs to another owner.
    #[error("there is no task with this ID")]
    NotFound,
    /// The state machine refused the event. Nothing was changed.
    #[error(transparent)]
    Refused(#[from] TransitionError),
    /// Another request has created a task of this owner under the idempotency key. Nothing was changed.
    #[error("the idempotency key was used for another request")]
    IdempotencyKeyUsed,
    /// There is no space left. Nothing was written. Free some space, then try again.
    #[error("the store is full: {0}")]
    Full(String),
    /// The operation failed, and nothing was written. Try again.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// The response of the backend was lost, so it is unknown whether the operation was committed. Read the task before
    /// trying again: an event that was committed is refused the second time.
    #[error("it is unknown whether the store has committed this write: {0}")]
    InDoubt(String),
    /// The lease of the node has ended, and other nodes may have claimed its tasks. Join again as a new node.
    #[error("the lease of this node has ended; it must join as a new node")]
    Lapsed,
    /// What is stored for this task cannot be read. Other tasks are not affected. Restore a backup if the task is needed.
    #[error("a row of the store is damaged and cannot be read: {0}")]
    Damaged(String),
    /// The store has stopped because it can no longer guarantee durability. Restart the process.
    #[error("the store has stopped: {0}")]
    Stopped(String),
}

impl StoreError {
    /// A stable code for scripts.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotFound => "NOT_FOUND",
            Self::Refused(_) => "REFUSED",
            Self::IdempotencyKeyUsed => "IDEMPOTENCY_KEY_USED",
            Self::Full(_) => "STORE_FULL",
            Self::Unavailable(_) => "STORE_UNAVAILABLE",
            Self::InDoubt(_) => "STORE_IN_DOUBT",
            Self::Lapsed => "LEASE_LAPSED",
            Self::Damaged(_) => "STORE_DAMAGED",
            Self::Stopped(_) => "STORE_STOPPED",
        }
    }
}
