//! How a task ended.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Json;

/// How a task ended, in no generation's words: whether a tool error shows as `failed` or as `completed` is for the
/// wire to say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// What the request would have returned.
    Answer {
        /// The result, as it will be sent.
        body: Json,
        /// Whether it reports a tool error.
        is_error: bool,
    },
    /// The request would have been answered with an error.
    Refusal(Fault),
    /// Somebody called it off.
    Cancelled,
}

/// An error as the requestor will get it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// The code that the handler chose. `None` for an ending of the engine's own: each protocol uses its own code for it.
    pub code: Option<i64>,
    /// One sentence.
    pub message: Arc<str>,
    /// Details, among them our own stable code under `code`.
    pub data: Option<Json>,
}

impl Fault {
    /// An ending of our own: a sentence for people, and a code in its data that scripts can rely on.
    pub fn own(code: &str, message: String) -> Self {
        let data = Json::from_text(format!("{{\"code\":\"{code}\"}}"));
        Self { code: None, message: message.into(), data: Some(data) }
    }

    /// The process that ran the task died, and its tool does not run again (or has done so often enough).
    pub fn crash_recovery(task: &crate::Task) -> Self {
        let doing = if task.phase.questions().is_some() { "waiting for an answer" } else { "running" };
        let times = if task.attempt == 1 { "once".to_owned() } else { format!("{} times", task.attempt) };
        Self::own("CRASH_RECOVERY", format!("The server stopped while this task was {doing}; it was started {times}."))
    }

    /// The handler ran longer than its tool allows.
    pub fn running_time(limit_ms: u64) -> Self {
        Self::own("RUNNING_TIME", format!("The task ran longer than its limit of {limit_ms} ms."))
    }

    /// The task was not done at the end of the longest life that its tool allows.
    pub fn life_time(limit_ms: u64) -> Self {
        Self::own("LIFE_TIME", format!("The task was not done within its limit of {limit_ms} ms from its creation."))
    }

    /// The handler panicked.
    pub fn panic(message: &str) -> Self {
        Self::own("HANDLER_PANIC", format!("The tool stopped on an internal error: {message}"))
    }

    /// Nobody serves the task's tool any more.
    pub fn tool_gone(tool: &crate::ToolRef) -> Self {
        Self::own("TOOL_GONE", format!("No server offers the tool {tool} any more."))
    }

    /// The result is larger than the tool's limit.
    pub fn result_too_large(bytes: usize, bytes_max: usize) -> Self {
        Self::own("RESULT_TOO_LARGE", format!("The result has {bytes} bytes; the limit is {bytes_max}."))
    }
}
