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
    /// The first child that has an open question. The status message names it for clients that do not know subtasks.
    pub asking_child: Option<&'a TaskId>,
    /// How long a client should wait before it polls again; 0 leaves the hint out.
    pub poll_interval_ms: u64,
}

impl<'a> TaskView<'a> {
    /// A task without progress, children and poll hint.
    pub fn of(task: &'a Task) -> Self {
        Self { task, progress: None, children: &[], asking_child: None, poll_interval_ms: 0 }
    }

    pub fn message(&self) -> Option<&'a Arc<str>> {
        self.task.status_message(self.progress)
    }

    /// The time of the last change, progress included.
    pub fn updated_at(&self) -> Timestamp {
        self.task.changed_at(self.progress)
    }
}
