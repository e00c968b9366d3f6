//! The outcome of a task.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Json;

/// How a task ended, independent of any wire generation: whether a tool error is shown as `failed` or as `completed` is
/// decided in `longhaul-wire`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// The request has a result.
    Answer {
        /// The result exactly as it will be sent.
        body: Json,
        /// Whether the result reports a tool error.
        is_error: bool,
    },
    /// The request has an error instead of a result.
    Refusal(Fault),
    Cancelled,
}

/// The error that the requestor gets instead of a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// The code that the handler chose. `None` for an error that Longhaul itself reports; each protocol has its own
    /// code for these.
    pub code: Option<i64>,
    pub message: Arc<str>,
    /// Details. For an error that Longhaul itself reports, its stable code is the member `code`.
    pub data: Option<Json>,
}

impl Fault {
    /// An error that Longhaul itself reports: a sentence for people, and in `data` a stable code for programs.
    pub fn own(code: &str, message: String) -> Self {
        let data = Json::from_text(format!("{{\"code\":\"{code}\"}}"));
        Self { code: None, message: message.into(), data: Some(data) }
    }

    /// The process that ran the task ended, and the tool's policy allows no further attempt.
    pub fn crash_recovery(task: &crate::Task) -> Self {
        let doing = if task.phase.questions().is_some() { "waiting for an answer" } else { "running" };
        let times = if task.attempt == 1 { "once".to_owned() } else { format!("{} times", task.attempt) };
        Self::own("CRASH_RECOVERY", format!("The server stopped while this task was {doing}; it was started {times}."))
    }

    pub fn running_time(limit_ms: u64) -> Self {
        Self::own("RUNNING_TIME", format!("The task ran longer than its limit of {limit_ms} ms."))
    }

    pub fn life_time(limit_ms: u64) -> Self {
        Self::own("LIFE_TIME", format!("The task was not done within its limit of {limit_ms} ms from its creation."))
    }

    pub fn panic(message: &str) -> Self {
        Self::own("HANDLER_PANIC", format!("The tool stopped on an internal error: {message}"))
    }

    pub fn tool_gone(tool: &crate::ToolRef) -> Self {
        Self::own("TOOL_GONE", format!("No server offers the tool {tool} any more."))
    }

    pub fn result_too_large(bytes: usize, bytes_max: usize) -> Self {
        Self::own("RESULT_TOO_LARGE", format!("The result has {bytes} bytes; the limit is {bytes_max}."))
    }
}
