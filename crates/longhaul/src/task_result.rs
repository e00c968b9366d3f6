//! How a task ended, for the code that waited for it: a handler that created a subtask, or a test.

use std::fmt;

use longhaul_engine::Failure;
use longhaul_task::{Json, Outcome};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// How a task ended. The code that gets it decides what a failure of the task means: [`text`](Self::text) and
/// [`value`](Self::value) return it as an error, which a handler can pass on with `?`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskResult {
    tool: String,
    outcome: Outcome,
}

impl TaskResult {
    pub(crate) fn new(tool: &str, outcome: Outcome) -> Self {
        Self { tool: tool.to_owned(), outcome }
    }

    /// Whether the task ended with a result that is not an error.
    pub fn is_success(&self) -> bool {
        matches!(self.outcome, Outcome::Result { is_error: false, .. })
    }

    /// Whether the task was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.outcome == Outcome::Cancelled
    }

    /// The texts of the result, joined by line breaks.
    pub fn text(&self) -> Result<String, Failure> {
        Ok(texts(&self.result()?))
    }

    /// The [structured](crate::Structured) result as a value of type `T`.
    pub fn value<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        let mut result = self.result()?;
        let fits = serde_json::from_value(result["structuredContent"].take());
        fits.map_err(|error| {
            Failure::tool(format!("the result of {} does not fit the expected type: {error}", self.tool))
        })
    }

    /// Why there is no result: the message of the tool or of the server. `None` if there is a result.
    pub fn error(&self) -> Option<String> {
        match &self.outcome {
            Outcome::Result { is_error: false, .. } => None,
            Outcome::Result { body, .. } => Some(error_text(body)),
            Outcome::Error(error) => Some(error.message.to_string()),
            Outcome::Cancelled => Some("it was cancelled".into()),
        }
    }

    /// The outcome as it is stored.
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    fn result(&self) -> Result<Value, Failure> {
        match (&self.outcome, self.error()) {
            (Outcome::Result { body, .. }, None) => Ok(serde_json::from_str(body.as_str())?),
            (_, error) => Err(Failure::tool(format!("{} failed: {}", self.tool, error.unwrap_or_default()))),
        }
    }
}

/// The result or the error, for messages to people.
impl fmt::Display for TaskResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.outcome {
            Outcome::Result { body, is_error } => {
                write!(f, "{}{}", if *is_error { "error " } else { "" }, body.as_str())
            }
            Outcome::Error(error) => {
                write!(f, "error {:?} {}", &*error.message, error.data.as_ref().map_or("", |data| data.as_str()))
            }
            Outcome::Cancelled => f.write_str("cancelled"),
        }
    }
}

/// What a result that is an error says.
pub(crate) fn error_text(body: &Json) -> String {
    serde_json::from_str(body.as_str()).map_or_else(|_| body.as_str().to_owned(), |result: Value| texts(&result))
}

fn texts(result: &Value) -> String {
    let blocks = result["content"].as_array().into_iter().flatten();
    blocks.filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
}
