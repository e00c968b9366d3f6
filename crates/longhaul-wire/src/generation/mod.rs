//! The generations of MCP tasks: how a call asks for a task, and how a task looks to its requestor.
//!
//! A generation is one module that implements [`TaskWire`]. The protocol's [`Revision`](crate::Revision) decides how
//! everything else looks.

mod core2025;
mod ext2026;

use std::fmt;
use std::ops::Deref;

use crate::jsonrpc::{RequestId, RpcError};
use crate::tool::ToolDeclaration;
use crate::{CallTool, Peer, ReplyTo, TaskView, jsonrpc, refusal};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Generation {
    /// Tasks as a part of revision 2025-11-25.
    Core2025,
    /// The extension `io.modelcontextprotocol/tasks` at revision 2026-07-28.
    Ext2026,
}

impl Generation {
    pub const ALL: [Self; 2] = [Self::Core2025, Self::Ext2026];

    /// The generation with that [`label`](TaskWire::label).
    pub fn of_label(label: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|generation| generation.label() == label)
    }
}

impl Deref for Generation {
    type Target = dyn TaskWire;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Core2025 => &core2025::Core2025,
            Self::Ext2026 => &ext2026::Ext2026,
        }
    }
}

/// The functions of a generation. The routing refuses a request for an operation that its generation does not have, so
/// the defaults are never used.
pub trait TaskWire: fmt::Debug + Sync + 'static {
    /// Names the generation in a task's `origin`, in the audit log and in metrics.
    fn label(&self) -> &'static str;

    /// Whether a call becomes a task, or why neither is possible.
    fn becomes_task(&self, call: &CallTool<'_>, tool: &ToolDeclaration, peer: Peer) -> Result<bool, RpcError>;

    /// The answer to a call that became a task. `immediate_response` is the tool's sentence for the model, to go on with
    /// while the task runs.
    fn created(&self, to: &ReplyTo<'_>, view: &TaskView<'_>, immediate_response: Option<&str>) -> String;

    /// The answer to a call that is repeated: the task that the first call created, as it is now.
    fn created_earlier(&self, to: &ReplyTo<'_>, view: &TaskView<'_>) -> String;

    /// The answer to a poll.
    fn task(&self, to: &ReplyTo<'_>, view: &TaskView<'_>) -> String;

    /// The answer to a request for the result; `None` while the task has not ended and the request has to wait.
    fn result(&self, to: &ReplyTo<'_>, _view: &TaskView<'_>) -> Option<String> {
        Some(not_in_this_generation(to, "tasks/result"))
    }

    /// One page of the requestor's tasks. `next_cursor` is present exactly when there are more.
    fn page(&self, to: &ReplyTo<'_>, _tasks: &[TaskView<'_>], _next_cursor: Option<&str>) -> String {
        not_in_this_generation(to, "tasks/list")
    }

    /// The answer to a cancellation that settled the task.
    fn cancelled(&self, to: &ReplyTo<'_>, view: &TaskView<'_>) -> String;

    /// The answer to a cancellation of a task that had ended before.
    fn cancelled_too_late(&self, to: &ReplyTo<'_>, view: &TaskView<'_>) -> Result<String, RpcError>;

    /// The answer to an update.
    fn updated(&self, to: &ReplyTo<'_>) -> String {
        not_in_this_generation(to, "tasks/update")
    }

    /// The notification of a changed task; `subscription` is the request of the stream, where there is one.
    fn changed(&self, subscription: Option<&RequestId>, view: &TaskView<'_>) -> String;

    /// The key in `_meta` that relates a message to a task.
    fn related_task_key(&self) -> Option<&'static str>;
}

fn not_in_this_generation(to: &ReplyTo<'_>, method: &str) -> String {
    jsonrpc::error(Some(to.id), &refusal::unknown_method(method))
}
