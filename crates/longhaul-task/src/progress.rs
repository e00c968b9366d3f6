//! The side slot of a task: how far it is.

use std::sync::Arc;

use crate::Timestamp;

/// How far a task is. The last write wins, none makes a revision, and a crash may lose the newest: it is a courtesy
/// to whoever watches, not part of the truth.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// How much is done. Only ever grows within an attempt.
    pub done: f64,
    /// Out of how much, if that is known.
    pub total: Option<f64>,
    /// What is going on.
    pub message: Option<Arc<str>>,
    /// When this was said.
    pub at: Timestamp,
}

impl Progress {
    /// The message within its limit.
    pub fn message(text: &str) -> Arc<str> {
        crate::task::short(text)
    }
}
