//! The outcome of a task.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Json;

/// How a task ended, independent of any wire generation: whether a tool error is shown as `failed` or as `completed` is
/// decided in `longhaul-wire`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// The request has a result.
    Result {
        /// The result exactly as it will be sent.
        body: Json,
        /// Whether the result reports a tool error.
        is_error: bool,
    },
    /// The request has an error instead of a result.
    Error(TaskError),
    Cancelled,
}

/// The error that the requestor gets instead of a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskError {
    /// The code that the handler chose. `None` for an error that Longhaul itself reports; each protocol has its own
    /// code for these.
    pub code: Option<i64>,
    pub message: Arc<str>,
    /// Details. For an error that Longhaul itself reports, its stable code is the member `code`.
    pub data: Option<Json>,
}

impl TaskError {
    /// An error that Longhaul itself reports: a sentence for people, and in `data` a stable code for programs.
    pub fn with_code(code: &str, message: String) -> Self {
        let data = Json::from_text(format!("{{\"code\":\"{code}\"}}"));
        Self { code: None, message: message.into(), data: Some(data) }
    }

    /// The process that ran the task ended, and the tool's policy allows no further attempt.
    pub fn crash_recovery(task: &crate::Task) -> Self {
        let doing = if task.phase.questions().is_some() { "waiting for an answer" } else { "running" };
        let times = if task.attempt == 1 { "once".to_owned() } else { format!("{} times", task.attempt) };
        Self::with_code(
            "CRASH_RECOVERY",
            format!("The server stopped while this task was {doing}; it was started {times}."),
        )
    }

    pub fn running_time(limit_ms: u64) -> Self {
        Self::with_code("RUNNING_TIME", format!("The task ran longer than its limit of {limit_ms} ms."))
    }

    pub fn life_time(limit_ms: u64) -> Self {
        Self::with_code(
            "LIFE_TIME",
            format!("The task was not done within its limit of {limit_ms} ms from its creation."),
        )
    }

    pub fn panic(message: &str) -> Self {
        Self::with_code("HANDLER_PANIC", format!("The tool stopped on an internal error: {message}"))
    }

    pub fn tool_gone(tool: &crate::ToolRef) -> Self {
        Self::with_code("TOOL_GONE", format!("No server offers the tool {tool} any more."))
    }

    pub fn result_too_large(bytes: usize, bytes_max: usize) -> Self {
        Self::with_code("RESULT_TOO_LARGE", format!("The result has {bytes} bytes; the limit is {bytes_max}."))
    }
}
