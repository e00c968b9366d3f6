//! Tickets: what a client without tasks gets for a call that takes longer than it should wait, and the tools by which its
//! model goes on. Every sentence here is for a model, and says what to do next.

use std::fmt::Write as _;

use longhaul_task::{Json, Outcome, Phase, Question};
use serde_json::{Value, json};

use crate::content::ToolResult;
use crate::tool::{Annotations, TaskSupport, ToolDeclaration, ToolError};
use crate::{TaskView, call_result, question, text};

/// The key of a ticket in the `_meta` of a result.
pub const META_KEY: &str = "longhaul/task";

/// The names of the tools for clients without tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TicketNames {
    pub status: String,
    pub result: String,
    pub answer: String,
    pub cancel: String,
    pub list: String,
}

impl Default for TicketNames {
    fn default() -> Self {
        Self {
            status: "task_status".into(),
            result: "task_result".into(),
            answer: "task_answer".into(),
            cancel: "task_cancel".into(),
            list: "task_list".into(),
        }
    }
}

/// A tool for clients without tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TicketTool {
    Status,
    Result,
    Answer,
    Cancel,
    List,
}

impl TicketTool {
    pub const ALL: [Self; 5] = [Self::Status, Self::Result, Self::Answer, Self::Cancel, Self::List];

    /// What lists say about it.
    pub fn declare(self, names: &TicketNames) -> Result<ToolDeclaration, ToolError> {
        let TicketNames { status, result, answer, cancel, list } = names;
        let task_id = json!({ "type": "string", "description": "The ID of the task, from an earlier answer." });
        let (name, description, properties, required) = match self {
            Self::Status => (
                status,
                format!(
                    "Says how a task stands that was started by an earlier call, and can wait for it. Call it again \
                         while the task is `working`; call `{result}` when it has ended."
                ),
                json!({ "taskId": task_id, "waitSeconds": { "type": "number", "minimum": 0,
                    "description": "How long to wait for the end of the task or for a question. 0 answers at once." } }),
                json!(["taskId"]),
            ),
            Self::Result => (
                result,
                format!(
                    "Returns the result of a task that has ended, exactly as the call that started it would have. Call \
                         `{status}` first to wait for the end."
                ),
                json!({ "taskId": task_id }),
                json!(["taskId"]),
            ),
            Self::Answer => (
                answer,
                format!(
                    "Answers the questions of a task that is `input_required`. Ask the user unless you know the answer. \
                         Then call `{status}`."
                ),
                json!({ "taskId": task_id, "answers": { "type": "object",
                    "description": "The key of each question, with a response to its request: for a form \
                                    {\"action\":\"accept\",\"content\":{…}}, or {\"action\":\"decline\"}." } }),
                json!(["taskId", "answers"]),
            ),
            Self::Cancel => (
                cancel,
                "Cancels a task that has not ended. It cannot be continued.".to_owned(),
                json!({ "taskId": task_id }),
                json!(["taskId"]),
            ),
            Self::List => (
                list,
                format!(
                    "Lists the tasks that were started by earlier calls, the newest first, for example to find one whose ID \
                         was lost. Call `{status}` or `{result}` with an ID from the list."
                ),
                json!({ "cursor": { "type": "string", "description": "The cursor of the next page, from an earlier list." } }),
                json!([]),
            ),
        };
        let schema = json!({ "type": "object", "properties": properties, "required": required,
            "additionalProperties": false });
        ToolDeclaration::draft(name.as_str())
            .description(description)
            .input_schema(Json::from_text(schema.to_string()))
            .annotations(self.hints())
            .task_support(TaskSupport::Forbidden)
            .declare()
    }

    /// Hosts ask their user before each call of a tool that may change something.
    fn hints(self) -> Annotations {
        let is_reading = matches!(self, Self::Status | Self::Result | Self::List);
        Annotations {
            read_only: Some(is_reading),
            destructive: Some(self == Self::Cancel),
            idempotent: Some(self != Self::Answer),
            open_world: Some(false),
            ..Annotations::default()
        }
    }

    pub fn name(self, names: &TicketNames) -> &str {
        match self {
            Self::Status => &names.status,
            Self::Result => &names.result,
            Self::Answer => &names.answer,
            Self::Cancel => &names.cancel,
            Self::List => &names.list,
        }
    }
}

/// The word for the state of a task.
pub fn status(phase: &Phase) -> &'static str {
    match phase {
        Phase::Queued { .. } | Phase::Running { .. } | Phase::Parked { .. } => "working",
        Phase::Waiting { .. } => "input_required",
        Phase::Settled { outcome: Outcome::Result { is_error: false, .. }, .. } => "completed",
        Phase::Settled { outcome: Outcome::Result { is_error: true, .. } | Outcome::Error(_), .. } => "failed",
        Phase::Settled { outcome: Outcome::Cancelled, .. } => "cancelled",
    }
}

/// The tool result that describes a task: how it stands, and what to do next.
pub fn ticket(view: &TaskView<'_>, names: &TicketNames) -> Json {
    with_meta(ToolResult::text(&sentence(view, names)).into_json(), view)
}

/// The result of a task that has ended; `None` before.
pub fn result(view: &TaskView<'_>) -> Option<Json> {
    let body = match view.task.phase.outcome()? {
        Outcome::Result { body, .. } => call_result::as_tool_result(view.task, body),
        Outcome::Error(fault) => {
            let code = text::code_of(fault).map(|code| format!(" [{code}]")).unwrap_or_default();
            ToolResult::error(&format!("The task failed: {}{code}", fault.message)).into_json()
        }
        Outcome::Cancelled => ToolResult::error("The task was cancelled.").into_json(),
    };
    Some(with_meta(body, view))
}

/// One page of tasks.
pub fn page(tasks: &[TaskView<'_>], names: &TicketNames, next_cursor: Option<&str>) -> Json {
    let mut shown = match tasks.len() {
        0 => "There are no tasks.".to_owned(),
        _ => format!("Call `{}` or `{}` with one of these IDs:", names.status, names.result),
    };
    for view in tasks {
        let task = view.task;
        let _ = write!(shown, "\n- {}: `{}`, {}", task.key.id.shown(), task.tool.name, status(&task.phase));
    }
    if let Some(cursor) = next_cursor {
        let _ = write!(shown, "\nThere are more. Call `{}` with {}.", names.list, json!({ "cursor": cursor }));
    }
    let tasks: Vec<Value> = tasks.iter().map(meta).collect();
    let body = json!({ "content": [{ "type": "text", "text": shown }], "_meta": { META_KEY: { "tasks": tasks } } });
    Json::from_text(body.to_string())
}

fn sentence(view: &TaskView<'_>, names: &TicketNames) -> String {
    let TicketNames { status, result, answer, .. } = names;
    let (task, id) = (view.task, view.task.key.id.shown());
    let tool = &task.tool.name;
    match &task.phase {
        Phase::Settled { outcome: Outcome::Cancelled, .. } => format!("The task {id} of `{tool}` was cancelled."),
        Phase::Settled { outcome, .. } => {
            let (end, what) = match outcome {
                Outcome::Result { is_error: false, .. } => ("ended", "its result"),
                _ => ("failed", "the reason"),
            };
            format!("The task {id} of `{tool}` has {end}. Call `{result}` with {} for {what}.", json!({ "taskId": id }))
        }
        Phase::Waiting { questions, .. } => {
            let asked: Vec<String> = questions.iter().map(describe).collect();
            format!(
                "`{tool}` needs an answer before it can go on. It runs as the task {id} and asks:\n{}\nAsk the user unless you \
                 know the answer. Then call `{answer}` with {{\"taskId\":{},\"answers\":{{…}}}}, where `answers` has the key \
                 of each question with {{\"action\":\"accept\",\"content\":{{…}}}} or {{\"action\":\"decline\"}}. Do not call \
                 `{tool}` again for this.",
                asked.join("\n"),
                json!(id),
            )
        }
        _ => {
            let mut next = format!("`{tool}` is still running, as the task {id}. ");
            if let Some(message) = view.message() {
                let _ = write!(next, "It says: {}. ", json!(&**message));
            }
            if let Some(child) = view.asking_child {
                let _ = write!(
                    next,
                    "Its subtask {child} needs an answer: call `{status}` with {} to see the question. ",
                    json!({ "taskId": child.shown() })
                );
            }
            let wait = json!({ "taskId": id, "waitSeconds": 30 });
            let _ = write!(
                next,
                "It goes on by itself. Call `{status}` with {wait} to wait for it, again and again until it has ended, and \
                 then `{result}`. Do not call `{tool}` again for this.",
            );
            next
        }
    }
}

/// A question in one line: its key, its text, the fields of its form.
fn describe(asked: &Question) -> String {
    let message = question::message(&asked.params).unwrap_or_default();
    let params: Value = serde_json::from_str(asked.params.as_str()).unwrap_or_default();
    let form = params.get("requestedSchema").map(|schema| format!(" The content fits the schema {schema}."));
    format!("- `{}`: {message}{}", asked.key, form.unwrap_or_default())
}

/// The ticket for programs.
fn meta(view: &TaskView<'_>) -> Value {
    let task = view.task;
    let mut ticket = json!({ "taskId": task.key.id.shown(), "status": status(&task.phase) });
    if let Some(questions) = task.phase.questions() {
        let requests = questions.iter().map(|asked| {
            let params: Value = serde_json::from_str(asked.params.as_str()).unwrap_or_default();
            (asked.key.as_str().to_owned(), json!({ "method": question::method(asked.kind), "params": params }))
        });
        ticket["inputRequests"] = Value::Object(requests.collect());
    }
    ticket
}

/// The result with the ticket in its `_meta`; everything else keeps its text. A result that is no object stays as it is.
fn with_meta(body: Json, view: &TaskView<'_>) -> Json {
    let Some(object) = text::raw(body.as_str().trim()).filter(|raw| text::is_object(raw)) else { return body };
    let (mut members, mut ticket) = (String::with_capacity(body.bytes() + 256), String::new());
    text::each_member(object, |name, value| match &*name {
        "_meta" => text::each_member(value, |name, value| {
            if name != META_KEY {
                text::push_foreign_member(&mut ticket, &name, value.get());
            }
        }),
        _ => text::push_foreign_member(&mut members, &name, value.get()),
    });
    text::push_raw_member(&mut ticket, META_KEY, &meta(view).to_string());
    Json::from_text(format!("{{{},\"_meta\":{{{}}}}}", members.trim_start_matches(','), &ticket[1..]))
}
