//! A task as it is read to be shown.

use std::sync::Arc;

use longhaul_engine::EngineError;
use longhaul_store::Snapshot;
use longhaul_task::{TaskId, TaskKey};
use longhaul_wire::TaskView;

use crate::receiver::ReceiverInner;
use crate::session::Session;

/// A task and its children: everything that a generation projects for one client.
pub(crate) struct LoadedTask {
    pub(crate) snapshot: Snapshot,
    children: Vec<TaskId>,
    asking_child: Option<TaskId>,
    poll_interval_ms: u64,
}

impl LoadedTask {
    /// Reads a task for a client in this session.
    pub(crate) async fn read(
        receiver: &ReceiverInner,
        key: &TaskKey,
        session: Option<&Session>,
    ) -> Result<Self, EngineError> {
        let snapshot = receiver.engine.read(key).await?;
        Self::of(receiver, snapshot, session).await
    }

    /// The task as a client in this session sees it: without a parent whose ID the client cannot use, because it belongs to
    /// another session.
    pub(crate) async fn of(
        receiver: &ReceiverInner,
        mut snapshot: Snapshot,
        session: Option<&Session>,
    ) -> Result<Self, EngineError> {
        let (task, store) = (&snapshot.task, receiver.engine.store());
        let children = match task.family.children {
            0 => Vec::new(),
            _ => store.children(&task.key).await?,
        };
        let asking_child = match task.family.children {
            0 => None,
            _ if task.is_settled() => None,
            _ => store.asking_child(&task.key).await?,
        };
        let parent_scope = task.family.parent.as_ref().and_then(TaskId::scope);
        if parent_scope.is_some_and(|scope| session.is_none_or(|session| session.scope() != scope)) {
            Arc::make_mut(&mut snapshot.task).family.parent = None;
        }
        Ok(Self { snapshot, children, asking_child, poll_interval_ms: receiver.options.poll_interval_ms })
    }

    pub(crate) fn children(&self) -> &[TaskId] {
        &self.children
    }

    pub(crate) fn view(&self) -> TaskView<'_> {
        TaskView {
            task: &self.snapshot.task,
            progress: self.snapshot.progress.as_deref(),
            children: &self.children,
            asking_child: self.asking_child.as_ref(),
            poll_interval_ms: self.poll_interval_ms,
        }
    }
}
