//! The extension `io.modelcontextprotocol/tasks` at revision 2026-07-28: the client declares in each request that it
//! takes tasks, the server decides which calls become one, and `tasks/get` brings the result and the open questions.

use longhaul_task::{Json, Outcome, Phase};

use super::{CallMode, TaskWire};
use crate::jsonrpc::{self, RequestId, RpcError, write_error};
use crate::project::{self, TaskFields};
use crate::tool::{TaskSupport, ToolDeclaration};
use crate::{CallTool, Capability, Peer, ReplyTo, Revision, TaskView, acknowledge, call_result, subscription};

#[derive(Debug)]
pub(super) struct Ext2026;

impl TaskWire for Ext2026 {
    fn label(&self) -> &'static str {
        "ext2026"
    }

    fn call_mode(&self, _: &CallTool<'_>, tool: &ToolDeclaration, peer: Peer) -> Result<CallMode, RpcError> {
        match (tool.task_support(), peer.capabilities.has(Capability::Tasks)) {
            (TaskSupport::Forbidden, _) | (TaskSupport::Optional, false) => Ok(CallMode::Ordinary),
            (TaskSupport::Optional | TaskSupport::Required, true) => Ok(CallMode::TaskOrResult),
            (TaskSupport::Required, false) => Err(Capability::Tasks.missing()),
        }
    }

    /// The members of the task stand on the result itself, without its result, error or questions. There is no place for
    /// an immediate response.
    fn created(&self, to: &ReplyTo<'_>, view: &TaskView<'_>, _: Option<&str>) -> String {
        jsonrpc::response(to.id, to.server.room() + 384, |out| {
            out.push_str("{\"resultType\":\"task\",");
            write_members(out, view);
            to.server.write_meta(out);
            out.push('}');
        })
    }

    fn created_earlier(&self, to: &ReplyTo<'_>, view: &TaskView<'_>) -> String {
        self.created(to, view, None)
    }

    /// `resultType` is `complete` whatever the status, because this is the whole answer to the poll. Two examples of
    /// SEP-2663 show `task`.
    fn task(&self, to: &ReplyTo<'_>, view: &TaskView<'_>) -> String {
        jsonrpc::response(to.id, to.server.room() + room(view), |out| {
            out.push_str("{\"resultType\":\"complete\",");
            write_detailed(out, view);
            to.server.write_meta(out);
            out.push('}');
        })
    }

    fn cancelled(&self, to: &ReplyTo<'_>, _: &TaskView<'_>) -> String {
        acknowledge(to)
    }

    fn cancelled_too_late(&self, to: &ReplyTo<'_>, _: &TaskView<'_>) -> Result<String, RpcError> {
        Ok(acknowledge(to))
    }

    fn updated(&self, to: &ReplyTo<'_>) -> String {
        acknowledge(to)
    }

    /// The whole task, as a poll would show it.
    fn changed(&self, subscription: Option<&RequestId>, view: &TaskView<'_>) -> Option<String> {
        Some(jsonrpc::notification("notifications/tasks", 128 + room(view), |out| {
            out.push('{');
            if let Some(id) = subscription {
                subscription::write_id(out, id);
                out.push(',');
            }
            write_detailed(out, view);
            out.push('}');
        }))
    }

    fn related_task_key(&self) -> Option<&'static str> {
        None
    }
}

fn status(phase: &Phase) -> &'static str {
    match phase {
        Phase::Queued { .. } | Phase::Running { .. } | Phase::Parked { .. } => "working",
        Phase::Waiting { .. } => "input_required",
        // A tool that reports an error has completed; only an error of the protocol is a failure here.
        Phase::Settled { outcome: Outcome::Result { .. }, .. } => "completed",
        Phase::Settled { outcome: Outcome::Error(_), .. } => "failed",
        Phase::Settled { outcome: Outcome::Cancelled, .. } => "cancelled",
    }
}

/// Appends the members that every status has.
fn write_members(out: &mut String, view: &TaskView<'_>) {
    let fields = TaskFields {
        status: status(&view.task.phase),
        message: view.message().map(|message| &**message),
        // The schema wants a positive retention.
        ttl: ("ttlMs", 1),
        poll_interval: "pollIntervalMs",
    };
    project::write(out, view, &fields);
}

/// Appends the same and the members of the status: the result, the error, the open questions. The result gets
/// `"resultType":"complete"`, without which the TypeScript tasks client reports a failure.
fn write_detailed(out: &mut String, view: &TaskView<'_>) {
    write_members(out, view);
    match &view.task.phase {
        Phase::Waiting { questions, .. } => {
            let questions = questions.iter().map(|asked| (asked.key.as_str(), asked.kind, &asked.params));
            call_result::write_input_requests(out, questions);
        }
        Phase::Settled { outcome: Outcome::Result { body, .. }, .. } => {
            out.push_str(",\"result\":");
            call_result::write_inlined(out, view.task, body);
        }
        Phase::Settled { outcome: Outcome::Error(fault), .. } => {
            let error = call_result::error_of_task(view.task, fault, Revision::V2026_07_28);
            out.push_str(",\"error\":");
            write_error(out, error.code, &error.message, error.data.as_ref());
        }
        Phase::Queued { .. }
        | Phase::Running { .. }
        | Phase::Parked { .. }
        | Phase::Settled { outcome: Outcome::Cancelled, .. } => {}
    }
}

/// Bytes of a detailed task, roughly.
fn room(view: &TaskView<'_>) -> usize {
    let payload = match &view.task.phase {
        Phase::Waiting { questions, .. } => questions.iter().map(|asked| asked.params.bytes() + 128).sum(),
        Phase::Settled { outcome: Outcome::Result { body, .. }, .. } => body.bytes(),
        Phase::Settled { outcome: Outcome::Error(fault), .. } => {
            fault.message.len() + fault.data.as_ref().map_or(0, Json::bytes)
        }
        _ => 0,
    };
    project::room(view) + payload
}
