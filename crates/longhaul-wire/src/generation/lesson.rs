//! The dialect of a published lesson about SEP-1686: `_meta.task` asks for a task and describes the one that was made,
//! `tasks/status` polls, and a status is called a state.

use longhaul_task::{Outcome, Phase, QuestionKind, TaskError};
use serde_json::value::RawValue;

use super::{CallMode, TaskWire, end_message, tool_error, write_page};
use crate::jsonrpc::{self, RequestId, RpcError};
use crate::text::ObjectMembers;
use crate::tool::{TaskSupport, ToolDeclaration};
use crate::{CallTool, Peer, ReplyTo, TaskRequest, TaskView, project, refusal, text};

#[derive(Debug)]
pub(super) struct Lesson;

impl TaskWire for Lesson {
    fn label(&self) -> &'static str {
        "lesson"
    }

    /// As in SEP-1686, a malformed flag is an error only if the request would become a task.
    fn task_request(
        &self,
        _: Option<&RawValue>,
        meta: Option<&ObjectMembers<'_>>,
    ) -> Result<Option<TaskRequest>, RpcError> {
        let Some(task) = meta.and_then(|meta| meta.get("task")) else { return Ok(None) };
        Ok(match (read_flag(task, "required"), read_flag(task, "optional")) {
            (Err(error), _) | (_, Err(error)) => Some(TaskRequest::with_error(error)),
            (Ok(true), _) => Some(TaskRequest::default()),
            (_, Ok(true)) => Some(TaskRequest { is_optional: true, ..TaskRequest::default() }),
            _ => None,
        })
    }

    fn augments(&self, method: &str) -> bool {
        matches!(method, "tools/call" | "prompts/get" | "resources/read")
    }

    fn task_mode(&self, request: &TaskRequest) -> Result<CallMode, RpcError> {
        if let Some(error) = request.malformed.as_deref() {
            return Err(error.clone());
        }
        Ok(if request.is_optional { CallMode::TaskOrResult } else { CallMode::Task })
    }

    /// A tool that does not run as a task answers an ordinary call.
    fn call_mode(&self, call: &CallTool<'_>, tool: &ToolDeclaration, _: Peer) -> Result<CallMode, RpcError> {
        match (&call.task, tool.task_support()) {
            (_, TaskSupport::Forbidden) | (None, TaskSupport::Optional) => Ok(CallMode::Ordinary),
            (Some(request), _) => self.task_mode(request),
            (None, TaskSupport::Required) => Err(refusal::task_required(tool.name())),
        }
    }

    fn created(&self, to: &ReplyTo<'_>, view: &TaskView<'_>, _: Option<&str>) -> String {
        // A new task is `working`, even if it ended before this answer was written: the first poll shows its end.
        write_created(to, view, "working")
    }

    fn created_earlier(&self, to: &ReplyTo<'_>, view: &TaskView<'_>) -> String {
        write_created(to, view, state(&view.task.phase))
    }

    fn task(&self, to: &ReplyTo<'_>, view: &TaskView<'_>) -> String {
        jsonrpc::response(to.id, project::room(view), |out| write_task(out, view))
    }

    fn result(&self, to: &ReplyTo<'_>, view: &TaskView<'_>) -> Option<String> {
        end_message(to, view, None)
    }

    fn page(&self, to: &ReplyTo<'_>, tasks: &[TaskView<'_>], next_cursor: Option<&str>) -> String {
        write_page(to, tasks, next_cursor, write_task)
    }

    /// The task as it is then; also for a task that had ended before.
    fn cancelled(&self, to: &ReplyTo<'_>, view: &TaskView<'_>) -> String {
        self.task(to, view)
    }

    fn changed(&self, _: Option<&RequestId>, view: &TaskView<'_>) -> Option<String> {
        Some(jsonrpc::notification("notifications/tasks/updated", 192, |out| {
            out.push('{');
            write_state(out, view);
            project::write_family(out, view);
            out.push('}');
        }))
    }

    fn progress_is_change(&self) -> bool {
        true
    }

    fn related_task_key(&self) -> Option<&'static str> {
        None
    }
}

/// A member of `_meta.task`. The key has no prefix, so a value without these members may mean something else and is ignored.
fn read_flag(task: &RawValue, name: &str) -> Result<bool, RpcError> {
    text::flag(text::member(task, name).filter(|flag| flag.get() != "null"))
        .ok_or_else(|| RpcError::invalid_params(format!("`_meta.task` is not valid: `{name}` must be true or false.")))
}

fn state(phase: &Phase) -> &'static str {
    match phase {
        Phase::Queued { .. } | Phase::Running { .. } | Phase::Parked { .. } => "working",
        // A task that only samples the client's model works: the client's user has nothing to do for it.
        Phase::Waiting { questions, .. } if questions.iter().all(|asked| asked.kind == QuestionKind::Sampling) => {
            "working"
        }
        Phase::Waiting { .. } => "input_required",
        Phase::Settled { outcome: Outcome::Result { is_error: false, .. }, .. } => "completed",
        Phase::Settled { outcome: Outcome::Result { is_error: true, .. } | Outcome::Error(_), .. } => "failed",
        Phase::Settled { outcome: Outcome::Cancelled, .. } => "cancelled",
    }
}

fn write_created(to: &ReplyTo<'_>, view: &TaskView<'_>, state: &str) -> String {
    jsonrpc::response(to.id, 192, |out| {
        out.push_str("{\"_meta\":{\"task\":{\"id\":");
        text::push_str(out, view.task.key.id.shown());
        text::push_str_member(out, "state", state);
        write_ttl(out, view);
        out.push_str("}}}");
    })
}

/// Appends the state and the progress hint: the part that is done if the whole is known, else what the handler counts. A
/// completed task is wholly done, also if its last report was lost.
fn write_state(out: &mut String, view: &TaskView<'_>) {
    out.push_str("\"taskId\":");
    text::push_str(out, view.task.key.id.shown());
    text::push_str_member(out, "state", state(&view.task.phase));
    let is_completed = matches!(view.task.phase.outcome(), Some(Outcome::Result { is_error: false, .. }));
    let hint = view.progress.map(|progress| match progress.total {
        Some(total) if total > 0.0 && is_completed => 1.0,
        Some(total) if total > 0.0 => progress.done / total,
        _ => progress.done,
    });
    if let Some(hint) = hint.filter(|hint| hint.is_finite()) {
        text::push_raw_member(out, "progress", &hint.to_string());
    }
}

fn write_task(out: &mut String, view: &TaskView<'_>) {
    out.push('{');
    write_state(out, view);
    let tool_error = tool_error(&view.task.phase);
    let message = tool_error.as_ref().or_else(|| view.message());
    project::write_message(out, "message", view, message.map(|message| &**message));
    if let Some(Outcome::Error(fault)) = view.task.phase.outcome() {
        text::push_str_member(out, "error", &error_word(fault));
    } else if let Some(error) = &tool_error {
        text::push_str_member(out, "error", error);
    }
    write_ttl(out, view);
    project::write_family(out, view);
    out.push('}');
}

fn write_ttl(out: &mut String, view: &TaskView<'_>) {
    match view.task.ttl_ms() {
        Some(ms) => text::push_number_member(out, "ttl", ms),
        None => text::push_raw_member(out, "ttl", "null"),
    }
}

/// The code of an error, such as `CRASH_RECOVERY`; its message if it has none.
fn error_word(fault: &TaskError) -> String {
    text::code_of(fault).map_or_else(|| fault.message.to_string(), std::borrow::Cow::into_owned)
}
