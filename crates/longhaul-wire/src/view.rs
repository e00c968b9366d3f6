//! What every generation's picture of a task is made from.

use std::sync::Arc;

use longhaul_task::{Progress, Task, TaskId, Timestamp};

/// A task and what stands beside it, as of one moment.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// The task.
    pub task: &'a Task,
    /// Its side slot.
    pub progress: Option<&'a Progress>,
    /// Its children, in the order they were made.
    pub children: &'a [TaskId],
    /// When this is told.
    pub now: Timestamp,
    /// How long a client should wait before it asks again; zero says nothing about it.
    pub poll_interval_ms: u64,
}

impl<'a> View<'a> {
    /// A task with nothing beside it.
    pub fn of(task: &'a Task, now: Timestamp) -> Self {
        Self { task, progress: None, children: &[], now, poll_interval_ms: 0 }
    }

    /// The side slot of a task that can still move. A word that was flushed after the end must not touch what is
    /// final.
    fn live_progress(&self) -> Option<&'a Progress> {
        self.progress.filter(|_| !self.task.is_settled())
    }

    /// What the task says about itself: the newer of its own word and its progress'.
    pub fn message(&self) -> Option<&'a Arc<str>> {
        let own = self.task.message.as_ref();
        let Some(progress) = self.live_progress() else {
            return own;
        };
        let said = progress.message.as_ref();
        if progress.at >= self.task.updated_at { said.or(own) } else { own.or(said) }
    }

    /// When anything about it last changed.
    pub fn updated_at(&self) -> Timestamp {
        let said_at = self.live_progress().map_or(Timestamp::ZERO, |progress| progress.at);
        self.task.updated_at.max(said_at)
    }
}
