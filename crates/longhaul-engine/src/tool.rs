//! A tool as the engine knows it, and the handler that the engine runs.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use longhaul_task::{Json, Outcome, Policy, QuestionKind, Retention, ToolRef};

use crate::{Ctx, CtxError, ToolLimits};

/// Carries out one attempt. The facade makes these from typed functions.
pub trait Handler: Send + Sync + 'static {
    /// Runs the tool on these arguments.
    fn run(&self, ctx: Ctx, input: Json) -> BoxFuture<'static, Result<Outcome, CtxError>>;
}

impl<F> Handler for F
where
    F: Fn(Ctx, Json) -> BoxFuture<'static, Result<Outcome, CtxError>> + Send + Sync + 'static,
{
    fn run(&self, ctx: Ctx, input: Json) -> BoxFuture<'static, Result<Outcome, CtxError>> {
        self(ctx, input)
    }
}

/// Checks whether an answer fits a question of this kind with these parameters. The error says why not.
pub type AnswerCheck = fn(QuestionKind, &Json, &Json) -> Result<(), String>;

/// A tool that the engine can run.
#[derive(Clone)]
pub struct EngineTool {
    pub tool: ToolRef,
    pub policy: Policy,
    /// The name of the form of its results, as error messages show it. A subtask whose form is not that of its parent is
    /// refused.
    pub result_kind: &'static str,
    /// How long the tool's tasks are kept, unless a request asks for another time.
    pub retention: Retention,
    pub limits: ToolLimits,
    pub handler: Arc<dyn Handler>,
    /// Decides whether an answer fits its question.
    pub check_answer: AnswerCheck,
    /// Returns the text of a result that is an error. The history shows it as the reason for another attempt.
    pub error_text: fn(&Json) -> String,
    /// Whether a handler that returns a tool error runs again, as often and with the waits that `policy` allows.
    pub retries_failures: bool,
    /// Runs before a task is created, to ask the requestor. Its result becomes the input of `handler`.
    pub prelude: Option<Arc<dyn Handler>>,
}

impl fmt::Debug for EngineTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineTool").field("tool", &self.tool).finish_non_exhaustive()
    }
}
