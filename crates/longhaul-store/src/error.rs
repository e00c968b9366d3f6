//! What can go wrong in a store, by what the caller can do about it.

use longhaul_task::Refused;

/// Why a store did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The owner has no such task: it never was, it is gone, or it is somebody else's. Nobody can tell which.
    #[error("there is no such task")]
    NotFound,
    /// The state machine said no; nothing changed.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// There is no room. Nothing was written, and what was there is still there; free some and try again.
    #[error("the store is full: {0}")]
    Full(String),
    /// It did not work this time. Nothing was written; try again.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// Nobody can say whether it was written: the answer was lost on its way. Read, then decide; trying again alone can
    /// tell a winner that it has lost.
    #[error("the store did not say whether it was written: {0}")]
    InDoubt(String),
    /// The node's lease is over, and what it held may be another's: it comes back under a new name or not at all.
    #[error("the lease of this node is over")]
    Lapsed,
    /// The store can promise nothing any more and has stopped. Restart the process.
    #[error("the store has stopped: {0}")]
    Stopped(String),
}

impl StoreError {
    /// A word that scripts can rely on.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotFound => "NOT_FOUND",
            Self::Refused(_) => "REFUSED",
            Self::Full(_) => "STORE_FULL",
            Self::Unavailable(_) => "STORE_UNAVAILABLE",
            Self::InDoubt(_) => "STORE_IN_DOUBT",
            Self::Lapsed => "LEASE_LAPSED",
            Self::Stopped(_) => "STORE_STOPPED",
        }
    }
}
