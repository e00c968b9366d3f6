//! A task as it is read to be shown.

use longhaul_engine::EngineError;
use longhaul_store::Snapshot;
use longhaul_task::{TaskId, TaskKey};
use longhaul_wire::TaskView;

use crate::receiver::ReceiverInner;

/// A task and its children: everything that a generation projects.
pub(crate) struct LoadedTask {
    pub(crate) snapshot: Snapshot,
    children: Vec<TaskId>,
    poll_interval_ms: u64,
}

impl LoadedTask {
    pub(crate) async fn read(receiver: &ReceiverInner, key: &TaskKey) -> Result<Self, EngineError> {
        let snapshot = receiver.engine.read(key).await?;
        Self::of(receiver, snapshot).await
    }

    pub(crate) async fn of(receiver: &ReceiverInner, snapshot: Snapshot) -> Result<Self, EngineError> {
        let children = match snapshot.task.family.children {
            0 => Vec::new(),
            _ => receiver.engine.store().children(&snapshot.task.key).await?,
        };
        Ok(Self { snapshot, children, poll_interval_ms: receiver.options.poll_interval_ms })
    }

    pub(crate) fn view(&self) -> TaskView<'_> {
        TaskView {
            task: &self.snapshot.task,
            progress: self.snapshot.progress.as_deref(),
            children: &self.children,
            poll_interval_ms: self.poll_interval_ms,
        }
    }
}
