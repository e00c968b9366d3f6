//! What a generation needs to know of a task to show it.

use std::sync::Arc;

use longhaul_task::{Progress, Task, TaskId, Timestamp};

/// Everything that a generation shows of a task, as of one moment.
#[derive(Debug, Clone, Copy)]
pub struct TaskView<'a> {
    pub task: &'a Task,
    /// The last progress that its handler reported.
    pub progress: Option<&'a Progress>,
    /// In the order of their creation.
    pub children: &'a [TaskId],
    pub now: Timestamp,
    /// How long a client should wait before it polls again; 0 leaves the hint out.
    pub poll_interval_ms: u64,
}

impl<'a> TaskView<'a> {
    /// A task without progress, children and poll hint.
    pub fn of(task: &'a Task, now: Timestamp) -> Self {
        Self { task, progress: None, children: &[], now, poll_interval_ms: 0 }
    }

    /// The progress of a task that has not ended. Progress that was stored after the end must not change what is final.
    fn live_progress(&self) -> Option<&'a Progress> {
        self.progress.filter(|_| !self.task.is_settled())
    }

    /// The status message: the newer of the task's own and its progress's.
    pub fn message(&self) -> Option<&'a Arc<str>> {
        let own = self.task.message.as_ref();
        let Some(progress) = self.live_progress() else {
            return own;
        };
        let reported = progress.message.as_ref();
        if progress.at >= self.task.updated_at { reported.or(own) } else { own.or(reported) }
    }

    /// The time of the last change, progress included.
    pub fn updated_at(&self) -> Timestamp {
        let reported_at = self.live_progress().map_or(Timestamp::ZERO, |progress| progress.at);
        self.task.updated_at.max(reported_at)
    }
}
