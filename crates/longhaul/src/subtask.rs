//! Subtasks of a handler.

use longhaul_engine::{CtxError, SubtaskRequest};
use longhaul_task::{Json, Outcome};
use serde::Serialize;
use serde_json::Value;

use crate::TaskResult;

/// A call of another tool of the same server, as a task of its own.
///
/// ```no_run
/// # use longhaul::{Ctx, Failure, Subtask};
/// # async fn handler(mut ctx: Ctx, pages: Vec<u32>) -> Result<String, Failure> {
/// let requests = pages.iter().map(|page| Subtask::new("write_page", serde_json::json!({ "page": page })));
/// let mut book = String::new();
/// for page in ctx.subtasks("pages", requests).await? {
///     book.push_str(&page.text()?);
/// }
/// # Ok(book)
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Subtask {
    tool: String,
    input: Result<Json, String>,
}

impl Subtask {
    /// A call of the tool with these arguments, which must be an object: a struct or a JSON object.
    pub fn new(tool: impl Into<String>, arguments: impl Serialize) -> Self {
        let input = match serde_json::to_value(arguments) {
            Ok(object @ Value::Object(_)) => Ok(Json::from_text(object.to_string())),
            Ok(other) => Err(format!("its arguments must be an object, but are {other}")),
            Err(error) => Err(format!("its arguments cannot be written as JSON: {error}")),
        };
        Self { tool: tool.into(), input }
    }
}

impl SubtaskRequest for Subtask {
    type Result = TaskResult;

    fn tool(&self) -> &str {
        &self.tool
    }

    fn input(&self) -> Result<Json, CtxError> {
        let bad = |reason: &String| CtxError::BadSubtask { tool: self.tool.as_str().into(), reason: reason.clone() };
        self.input.as_ref().map_err(bad).cloned()
    }

    fn read(&self, outcome: Outcome) -> Result<TaskResult, CtxError> {
        Ok(TaskResult::new(&self.tool, outcome))
    }
}
