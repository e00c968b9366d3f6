//! Tasks as a part of revision 2025-11-25: a call asks for a task with `params.task`, the result is fetched with
//! `tasks/result`, and questions are requests of the server.

use longhaul_task::{Outcome, Phase};
use serde_json::value::RawValue;

use super::{CallMode, TaskWire, end_message, tool_error, write_page};
use crate::jsonrpc::{self, RequestId, RpcError};
use crate::project::{self, TaskFields};
use crate::text::ObjectMembers;
use crate::tool::{TaskSupport, ToolDeclaration};
use crate::{CallTool, Generation, Peer, RelatedTask, ReplyTo, TaskRequest, TaskView, Ttl, refusal, text};

/// The key of a tool's sentence for the model in the answer to a creation.
const IMMEDIATE_RESPONSE: &str = "io.modelcontextprotocol/model-immediate-response";

#[derive(Debug)]
pub(super) struct Core2025;

impl TaskWire for Core2025 {
    fn label(&self) -> &'static str {
        "core2025"
    }

    fn task_request(
        &self,
        task: Option<&RawValue>,
        _: Option<&ObjectMembers<'_>>,
    ) -> Result<Option<TaskRequest>, RpcError> {
        let Some(task) = task else { return Ok(None) };
        if !text::is_object(task) {
            return Err(RpcError::invalid_params("`task` must be an object"));
        }
        let ttl = match text::member(task, "ttl") {
            None => Ttl::Usual,
            Some(ttl) if ttl.get() == "null" => Ttl::Unlimited,
            Some(ttl) => text::milliseconds(ttl).map(Ttl::Ms).ok_or_else(|| {
                RpcError::invalid_params("`task.ttl` must be null or a number of milliseconds that is not negative")
            })?,
        };
        Ok(Some(TaskRequest { ttl, ..TaskRequest::default() }))
    }

    /// Revisions without tasks have no error for a tool that requires one, so the server decides whether it can run so.
    fn call_mode(&self, call: &CallTool<'_>, tool: &ToolDeclaration, peer: Peer) -> Result<CallMode, RpcError> {
        match (call.task.is_some(), tool.task_support()) {
            (true, TaskSupport::Forbidden) => Err(refusal::task_forbidden(tool.name())),
            (false, TaskSupport::Required) if peer.revision.has_tasks() => Err(refusal::task_required(tool.name())),
            (true, _) => Ok(CallMode::Task),
            (false, _) => Ok(CallMode::Ordinary),
        }
    }

    fn created(&self, to: &ReplyTo<'_>, view: &TaskView<'_>, immediate_response: Option<&str>) -> String {
        jsonrpc::response(to.id, project::room(view) + 128 + immediate_response.map_or(0, str::len), |out| {
            out.push_str("{\"task\":{");
            // A new task is `working`, even if it ended before this answer was written: the first poll shows its end.
            let message = view.message().filter(|_| !view.task.is_settled());
            write_members(out, view, "working", message.map(|message| &**message));
            out.push('}');
            if let Some(sentence) = immediate_response {
                out.push_str(",\"_meta\":{\"");
                out.push_str(IMMEDIATE_RESPONSE);
                out.push_str("\":");
                text::push_str(out, sentence);
                out.push('}');
            }
            out.push('}');
        })
    }

    fn created_earlier(&self, to: &ReplyTo<'_>, view: &TaskView<'_>) -> String {
        jsonrpc::response(to.id, project::room(view) + 16, |out| {
            out.push_str("{\"task\":");
            write_task(out, view);
            out.push('}');
        })
    }

    fn task(&self, to: &ReplyTo<'_>, view: &TaskView<'_>) -> String {
        jsonrpc::response(to.id, project::room(view), |out| write_task(out, view))
    }

    /// What the call would have been answered with, an error included, and the related-task key.
    fn result(&self, to: &ReplyTo<'_>, view: &TaskView<'_>) -> Option<String> {
        end_message(to, view, Some(RelatedTask::to(Generation::Core2025, view.task)))
    }

    fn page(&self, to: &ReplyTo<'_>, tasks: &[TaskView<'_>], next_cursor: Option<&str>) -> String {
        write_page(to, tasks, next_cursor, write_task)
    }

    fn cancelled(&self, to: &ReplyTo<'_>, view: &TaskView<'_>) -> String {
        self.task(to, view)
    }

    fn cancelled_too_late(&self, _: &ReplyTo<'_>, view: &TaskView<'_>) -> Result<String, RpcError> {
        Err(refusal::already_ended(status(&view.task.phase)))
    }

    /// The whole task, as a poll would show it. It has the task's ID, so it needs no related-task key.
    fn changed(&self, _: Option<&RequestId>, view: &TaskView<'_>) -> Option<String> {
        Some(jsonrpc::notification("notifications/tasks/status", project::room(view), |out| write_task(out, view)))
    }

    fn related_task_key(&self) -> Option<&'static str> {
        Some("io.modelcontextprotocol/related-task")
    }
}

fn status(phase: &Phase) -> &'static str {
    match phase {
        Phase::Queued { .. } | Phase::Running { .. } | Phase::Parked { .. } => "working",
        Phase::Waiting { .. } => "input_required",
        Phase::Settled { outcome: Outcome::Result { is_error: false, .. }, .. } => "completed",
        // A tool that reports an error has failed here, like an error of the protocol.
        Phase::Settled { outcome: Outcome::Result { is_error: true, .. } | Outcome::Error(_), .. } => "failed",
        Phase::Settled { outcome: Outcome::Cancelled, .. } => "cancelled",
    }
}

fn write_task(out: &mut String, view: &TaskView<'_>) {
    let error = tool_error(&view.task.phase);
    let message = error.as_ref().or_else(|| view.message());
    out.push('{');
    write_members(out, view, status(&view.task.phase), message.map(|message| &**message));
    out.push('}');
}

fn write_members(out: &mut String, view: &TaskView<'_>, status: &str, message: Option<&str>) {
    project::write(out, view, &TaskFields { status, message, ttl: ("ttl", 0), poll_interval: "pollInterval" });
}
