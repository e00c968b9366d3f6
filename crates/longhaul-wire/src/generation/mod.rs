//! The generations of MCP tasks: how a call asks for a task, and how a task looks to its requestor.
//!
//! A generation is one module that implements [`TaskWire`]. The protocol's [`Revision`](crate::Revision) decides how
//! everything else looks.

mod core2025;
mod ext2026;
mod lesson;
mod sep1686;

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use longhaul_task::{Outcome, Phase, Progress};
use serde_json::value::RawValue;

use crate::jsonrpc::{RequestId, RpcError};
use crate::text::ObjectMembers;
use crate::tool::ToolDeclaration;
use crate::{
    CallTool, Peer, RelatedTask, ReplyTo, TaskRequest, TaskView, call_result, jsonrpc, project, refusal, text,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Generation {
    /// SEP-1686 as it was accepted: the requestor chooses the ID, and the call is still answered with its result.
    Sep1686,
    /// Tasks as a part of revision 2025-11-25.
    Core2025,
    /// The extension `io.modelcontextprotocol/tasks` at revision 2026-07-28.
    Ext2026,
    /// The dialect of a published lesson about SEP-1686.
    Lesson,
}

impl Generation {
    pub const ALL: [Self; 4] = [Self::Sep1686, Self::Core2025, Self::Ext2026, Self::Lesson];

    /// The generation with that [`label`](TaskWire::label).
    pub fn of_label(label: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|generation| generation.label() == label)
    }
}

impl Deref for Generation {
    type Target = dyn TaskWire;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Sep1686 => &sep1686::Sep1686,
            Self::Core2025 => &core2025::Core2025,
            Self::Ext2026 => &ext2026::Ext2026,
            Self::Lesson => &lesson::Lesson,
        }
    }
}

/// How a request is carried out and answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallMode {
    /// The client takes no task.
    Ordinary,
    /// As a task, which is the answer.
    Task,
    /// As a task. If it ends soon, its result can be the answer instead.
    TaskOrResult,
    /// As a task that the client is told of before the answer, which is the task's result.
    TaskThenResult,
}

/// The functions of a generation. The routing refuses a request for an operation that its generation does not have, so
/// the defaults that refuse are never used.
pub trait TaskWire: fmt::Debug + Sync + 'static {
    /// Names the generation in a task's `origin`, in the audit log and in metrics.
    fn label(&self) -> &'static str;

    /// How a request of a session asks for a task, by its parameter `task` or its `_meta`.
    fn task_request(
        &self,
        _task: Option<&RawValue>,
        _meta: Option<&ObjectMembers<'_>>,
    ) -> Result<Option<TaskRequest>, RpcError> {
        Ok(None)
    }

    /// Whether it makes tasks of requests with this method.
    fn augments(&self, method: &str) -> bool {
        method == "tools/call"
    }

    /// How a request that asks for a task is carried out, if it can be one.
    fn task_mode(&self, _request: &TaskRequest) -> Result<CallMode, RpcError> {
        Ok(CallMode::Task)
    }

    /// Whether a call becomes a task and what answers it, or why neither is possible.
    fn call_mode(&self, call: &CallTool<'_>, tool: &ToolDeclaration, peer: Peer) -> Result<CallMode, RpcError>;

    /// The answer to a call that became a task. `immediate_response` is the tool's sentence for the model, to go on with
    /// while the task runs.
    fn created(&self, to: &ReplyTo<'_>, view: &TaskView<'_>, _immediate_response: Option<&str>) -> String {
        self.task(to, view)
    }

    /// The answer to a call that is repeated: the task that the first call created, as it is now.
    fn created_earlier(&self, to: &ReplyTo<'_>, view: &TaskView<'_>) -> String {
        self.created(to, view, None)
    }

    /// The notification of a new task.
    fn announcement(&self, _task: RelatedTask<'_>) -> Option<String> {
        None
    }

    /// The answer to a call by the result of its task; `None` while the task has not ended.
    fn answer(&self, to: &ReplyTo<'_>, view: &TaskView<'_>) -> Option<Result<String, RpcError>> {
        end(to, view, None)
    }

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
    fn cancelled(&self, to: &ReplyTo<'_>, _view: &TaskView<'_>) -> String {
        not_in_this_generation(to, "tasks/cancel")
    }

    /// The answer to a cancellation of a task that had ended before.
    fn cancelled_too_late(&self, to: &ReplyTo<'_>, view: &TaskView<'_>) -> Result<String, RpcError> {
        Ok(self.cancelled(to, view))
    }

    /// The answer to an update.
    fn updated(&self, to: &ReplyTo<'_>) -> String {
        not_in_this_generation(to, "tasks/update")
    }

    /// The answer to a deletion.
    fn deleted(&self, to: &ReplyTo<'_>, _task: RelatedTask<'_>) -> String {
        not_in_this_generation(to, "tasks/delete")
    }

    /// The notification of a changed task; `subscription` is the request of the stream, where there is one.
    fn changed(&self, subscription: Option<&RequestId>, view: &TaskView<'_>) -> Option<String>;

    /// Whether progress alone is a change that the client is told of.
    fn progress_is_change(&self) -> bool {
        false
    }

    /// The key in `_meta` that relates a message to a task.
    fn related_task_key(&self) -> Option<&'static str>;
}

/// The end of a task as the answer to the request that it was made of; `None` while the task has not ended. `related` is the
/// task, where the answer names it.
fn end(to: &ReplyTo<'_>, view: &TaskView<'_>, related: Option<RelatedTask<'_>>) -> Option<Result<String, RpcError>> {
    Some(match view.task.phase.outcome()? {
        Outcome::Result { body, .. } => Ok(call_result::of_task(to, view.task, body, related)),
        Outcome::Error(fault) => Err(call_result::error_of_task(view.task, fault, to.revision)),
        Outcome::Cancelled => Err(refusal::task_was_cancelled()),
    })
}

/// A page of tasks, each written by `write`.
fn write_page(
    to: &ReplyTo<'_>,
    tasks: &[TaskView<'_>],
    next_cursor: Option<&str>,
    write: impl Fn(&mut String, &TaskView<'_>),
) -> String {
    let room: usize = tasks.iter().map(project::room).sum();
    jsonrpc::response(to.id, room + 64 + next_cursor.map_or(0, str::len), |out| {
        out.push_str("{\"tasks\":");
        text::push_array(out, tasks, write);
        if let Some(cursor) = next_cursor {
            text::push_str_member(out, "nextCursor", cursor);
        }
        out.push('}');
    })
}

/// The end of a task as a message.
fn end_message(to: &ReplyTo<'_>, view: &TaskView<'_>, related: Option<RelatedTask<'_>>) -> Option<String> {
    end(to, view, related).map(|ended| ended.unwrap_or_else(|error| jsonrpc::error(Some(to.id), &error)))
}

fn not_in_this_generation(to: &ReplyTo<'_>, method: &str) -> String {
    jsonrpc::error(Some(to.id), &refusal::unknown_method(method))
}

/// The text of a tool's error, shortened to a status message, for the generations in which such a task has failed. Both
/// published clients of [`Generation::Core2025`] drop the result of a failed task and show only its status message.
fn tool_error(phase: &Phase) -> Option<Arc<str>> {
    let Some(Outcome::Result { body, is_error: true }) = phase.outcome() else {
        return None;
    };
    let content = text::member(text::raw(body.as_str())?, "content")?;
    let blocks: Vec<&RawValue> = serde_json::from_str(content.get()).ok()?;
    let texts: Vec<_> =
        blocks.into_iter().filter_map(|block| text::member(block, "text")).filter_map(text::string).collect();
    (!texts.is_empty()).then(|| Progress::message(&texts.join("\n")))
}
