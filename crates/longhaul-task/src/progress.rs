//! The progress of a task, which is stored beside the task.

use std::sync::Arc;

use crate::{Task, Timestamp};

/// The progress of a task. The last write wins, a write does not raise the task's revision, and a crash may lose the
/// newest value. No transition depends on it.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// The amount that is done. It never decreases within an attempt.
    pub done: f64,
    /// The amount at the end, if it is known.
    pub total: Option<f64>,
    /// Newer than the message of the task: an attempt that has made progress and sets that one sets this one, too. So no
    /// time is compared, and other changes of the task do not matter.
    pub message: Option<Arc<str>>,
    pub at: Timestamp,
}

impl Progress {
    /// Cuts a message to [`MESSAGE_BYTES_MAX`](crate::MESSAGE_BYTES_MAX).
    pub fn message(text: &str) -> Arc<str> {
        crate::task::cut_message(text)
    }
}

impl Task {
    /// The progress of a task that has not ended. Progress that was stored after the end must not change what is final.
    fn live_progress<'a>(&self, progress: Option<&'a Progress>) -> Option<&'a Progress> {
        progress.filter(|_| !self.is_settled())
    }

    /// The status message that every reader is shown: the newer of the task's own and its progress's.
    pub fn status_message<'a>(&'a self, progress: Option<&'a Progress>) -> Option<&'a Arc<str>> {
        let reported = self.live_progress(progress).and_then(|progress| progress.message.as_ref());
        reported.or(self.message.as_ref())
    }

    /// The time of the last change, progress included.
    pub fn changed_at(&self, progress: Option<&Progress>) -> Timestamp {
        self.live_progress(progress).map_or(self.updated_at, |progress| progress.at.max(self.updated_at))
    }
}
