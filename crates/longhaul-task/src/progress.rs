//! The progress of a task, which is stored beside the task.

use std::sync::Arc;

use crate::Timestamp;

/// The progress of a task. The last write wins, a write does not raise the task's revision, and a crash may lose the
/// newest value. No transition depends on it.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// The amount that is done. It never decreases within an attempt.
    pub done: f64,
    /// The amount at the end, if it is known.
    pub total: Option<f64>,
    pub message: Option<Arc<str>>,
    pub at: Timestamp,
}

impl Progress {
    /// Cuts a message to [`MESSAGE_BYTES_MAX`](crate::MESSAGE_BYTES_MAX).
    pub fn message(text: &str) -> Arc<str> {
        crate::task::cut_message(text)
    }
}
