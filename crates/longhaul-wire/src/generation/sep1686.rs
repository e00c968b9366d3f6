//! SEP-1686 as it was accepted: a request names the task that it becomes, the requestor is told when the task exists, and
//! the request is still answered with its result. Everything about a task names it in `_meta`.

use longhaul_task::{Outcome, Phase, TaskId};
use serde_json::value::RawValue;

use super::{CallMode, TaskWire, end, write_page};
use crate::jsonrpc::{self, RequestId, RpcError};
use crate::related::write_meta;
use crate::text::ObjectMembers;
use crate::tool::{TaskSupport, ToolDeclaration};
use crate::{CallTool, Generation, Peer, RelatedTask, ReplyTo, TaskRequest, TaskView, Ttl, project, refusal, text};

/// The key by which a request asks for a task.
const TASK: &str = "modelcontextprotocol.io/task";

#[derive(Debug)]
pub(super) struct Sep1686;

impl TaskWire for Sep1686 {
    fn label(&self) -> &'static str {
        "sep1686"
    }

    /// A malformed key is an error only if the request would become a task. Otherwise the document has it ignored.
    fn task_request(
        &self,
        _: Option<&RawValue>,
        meta: Option<&ObjectMembers<'_>>,
    ) -> Result<Option<TaskRequest>, RpcError> {
        let task = meta.and_then(|meta| meta.get(TASK));
        Ok(task.map(|task| read_task(task).unwrap_or_else(TaskRequest::with_error)))
    }

    fn augments(&self, method: &str) -> bool {
        matches!(method, "tools/call" | "prompts/get" | "resources/read")
    }

    fn task_mode(&self, request: &TaskRequest) -> Result<CallMode, RpcError> {
        request.malformed.as_deref().map_or(Ok(CallMode::TaskThenResult), |error| Err(error.clone()))
    }

    /// The key is ignored by a tool that does not run as a task.
    fn call_mode(&self, call: &CallTool<'_>, tool: &ToolDeclaration, _: Peer) -> Result<CallMode, RpcError> {
        match (&call.task, tool.task_support()) {
            // The generation has no error for a tool that requires a task, so the server decides whether it can run so.
            (_, TaskSupport::Forbidden) | (None, _) => Ok(CallMode::Ordinary),
            (Some(request), _) => self.task_mode(request),
        }
    }

    /// The task is named by the related-task key; there are no other parameters.
    fn announcement(&self, task: RelatedTask<'_>) -> Option<String> {
        Some(jsonrpc::notification("notifications/tasks/created", 160, |out| write_only_meta(out, task)))
    }

    fn answer(&self, to: &ReplyTo<'_>, view: &TaskView<'_>) -> Option<Result<String, RpcError>> {
        end(to, view, Some(RelatedTask::to(Generation::Sep1686, view.task)))
    }

    fn task(&self, to: &ReplyTo<'_>, view: &TaskView<'_>) -> String {
        jsonrpc::response(to.id, project::room(view), |out| {
            out.push('{');
            write_members(out, view);
            write_meta(out, None, Some(RelatedTask::to(Generation::Sep1686, view.task)));
            out.push('}');
        })
    }

    /// Never waits: a task that has not completed has no result.
    fn result(&self, to: &ReplyTo<'_>, view: &TaskView<'_>) -> Option<String> {
        let answer = self.answer(to, view).and_then(Result::ok);
        Some(answer.unwrap_or_else(|| jsonrpc::error(Some(to.id), &refusal::not_completed(status(view)))))
    }

    fn page(&self, to: &ReplyTo<'_>, tasks: &[TaskView<'_>], next_cursor: Option<&str>) -> String {
        write_page(to, tasks, next_cursor, |out, view| {
            out.push('{');
            write_members(out, view);
            out.push('}');
        })
    }

    /// The document has no `tasks/cancel`. A client that sends it gets the answer of the revision that followed.
    fn cancelled(&self, to: &ReplyTo<'_>, view: &TaskView<'_>) -> String {
        Generation::Core2025.cancelled(to, view)
    }

    fn cancelled_too_late(&self, to: &ReplyTo<'_>, view: &TaskView<'_>) -> Result<String, RpcError> {
        Generation::Core2025.cancelled_too_late(to, view)
    }

    fn deleted(&self, to: &ReplyTo<'_>, task: RelatedTask<'_>) -> String {
        jsonrpc::response(to.id, 160, |out| write_only_meta(out, task))
    }

    /// The requestor polls.
    fn changed(&self, _: Option<&RequestId>, _: &TaskView<'_>) -> Option<String> {
        None
    }

    fn related_task_key(&self) -> Option<&'static str> {
        Some("modelcontextprotocol.io/related-task")
    }
}

fn read_task(task: &RawValue) -> Result<TaskRequest, RpcError> {
    let wrong = |what: &str| RpcError::invalid_params(format!("`{TASK}` is not valid: {what}."));
    if !text::is_object(task) {
        return Err(wrong("it must be an object with a `taskId`"));
    }
    let id = text::member(task, "taskId").and_then(text::string);
    let id = id.ok_or_else(|| wrong("`taskId` must be a string"))?;
    let id = TaskId::parse(&id).map_err(|error| wrong(&format!("`taskId` cannot be used: {error}")))?;
    if !id.can_be_chosen() {
        return Err(wrong("`taskId` has a character that is reserved here"));
    }
    let ttl = match text::member(task, "keepAlive").filter(|kept| kept.get() != "null") {
        // From the end too, so that a poll shows the actual duration before the end is known.
        None => Ttl::UsualAfterEnd,
        Some(kept) => text::milliseconds(kept)
            .map(Ttl::MsAfterEnd)
            .ok_or_else(|| wrong("`keepAlive` must be null or a number of milliseconds that is not negative"))?,
    };
    Ok(TaskRequest { ttl, id: Some(id), ..TaskRequest::default() })
}

/// There is also `unknown`, for a receiver that has lost a task's state. This one never does.
fn status(view: &TaskView<'_>) -> &'static str {
    match &view.task.phase {
        // Only a task that never ran: one that waits for another attempt is working.
        Phase::Queued { .. } if view.task.attempt == 0 => "submitted",
        Phase::Queued { .. } | Phase::Running { .. } | Phase::Parked { .. } => "working",
        Phase::Waiting { .. } => "input_required",
        // An error of the tool is a result; only an error of the protocol is a failure of the task.
        Phase::Settled { outcome: Outcome::Result { .. }, .. } => "completed",
        Phase::Settled { outcome: Outcome::Error(_), .. } => "failed",
        Phase::Settled { outcome: Outcome::Cancelled, .. } => "cancelled",
    }
}

fn write_members(out: &mut String, view: &TaskView<'_>) {
    out.push_str("\"taskId\":");
    text::push_str(out, view.task.key.id.shown());
    text::push_str_member(out, "status", status(view));
    match view.task.kept_after_end_ms() {
        Some(ms) => text::push_number_member(out, "keepAlive", ms),
        None => text::push_raw_member(out, "keepAlive", "null"),
    }
    if view.poll_interval_ms > 0 && !view.task.is_settled() {
        text::push_number_member(out, "pollFrequency", view.poll_interval_ms);
    }
    if let Some(Outcome::Error(fault)) = view.task.phase.outcome() {
        text::push_str_member(out, "error", &fault.message);
    }
    project::write_family(out, view);
}

/// Appends an object with nothing but the related task.
fn write_only_meta(out: &mut String, task: RelatedTask<'_>) {
    let mut meta = String::new();
    write_meta(&mut meta, None, Some(task));
    out.push('{');
    out.push_str(meta.strip_prefix(',').unwrap_or_default());
    out.push('}');
}
