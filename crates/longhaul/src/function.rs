//! Functions behind prompts, resources and completions. The engine runs them like tools, under names that no tool can
//! have: see [`function_name`](longhaul_wire::call_result::function_name). Their input is the parameters of the request,
//! and the body of their outcome is the result of the request.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use longhaul_engine::{Ctx, CtxError, EngineTool, Failure, ToolLimits};
use longhaul_task::{Json, OnCrash, Outcome, Policy, Retention, TaskError, ToolRef};
use longhaul_wire::jsonrpc::code;
use longhaul_wire::question;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::tool::RETENTION_MS;

/// What such a function gives: the result of the request.
pub(crate) type ResultBody = Result<Json, Failure>;

/// How such a function is run.
#[derive(Default)]
pub(crate) struct FunctionRules {
    pub(crate) limits: ToolLimits,
    /// What a crash does to its tasks; `None` if it does not run as a task.
    pub(crate) on_crash: Option<OnCrash>,
}

/// `result_kind` is the kind of its results.
pub(crate) fn engine_tool<I, F, Fut>(
    name: String,
    result_kind: &'static str,
    rules: FunctionRules,
    function: F,
) -> EngineTool
where
    I: DeserializeOwned + Send + 'static,
    F: Fn(Ctx, I) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ResultBody> + Send + 'static,
{
    let function = Arc::new(function);
    let handler = move |ctx: Ctx, input: Json| {
        let function = Arc::clone(&function);
        let running: Pin<Box<dyn Future<Output = Result<Outcome, CtxError>> + Send>> = Box::pin(async move {
            let input = serde_json::from_str(input.as_str());
            let input = input.map_err(|error| Failure::protocol(code::INVALID_PARAMS, &error.to_string()));
            let ended = match input {
                Ok(input) => function(ctx, input).await,
                Err(error) => Err(error),
            };
            end(ended)
        });
        running
    };
    EngineTool {
        tool: ToolRef::new(name, "1"),
        policy: Policy { on_crash: rules.on_crash.unwrap_or_default(), ..Policy::default() },
        result_kind,
        retention: Retention::FromCreation(RETENTION_MS),
        limits: rules.limits,
        check_answer: |kind, params, answer| {
            let answer = serde_json::from_str::<&RawValue>(answer.as_str()).map_err(|error| error.to_string())?;
            question::check_parts(None, kind, params, answer).map_err(|wrong| wrong.why().to_owned())
        },
        // Their failures are errors, never results.
        error_text: |body| body.as_str().to_owned(),
        retries_failures: false,
        handler: Arc::new(handler),
        prelude: None,
    }
}

/// How the request ends. A failure is a JSON-RPC error: there is no result that a model could read.
fn end(ended: ResultBody) -> Result<Outcome, CtxError> {
    match ended {
        Ok(body) => Ok(Outcome::Result { body, is_error: false }),
        Err(Failure::Protocol(error)) => Ok(Outcome::Error(error)),
        Err(Failure::Stop(stop)) => Err(stop),
        Err(other) => {
            let message = other.message().into();
            Ok(Outcome::Error(TaskError { code: Some(code::INTERNAL), message, data: None }))
        }
    }
}
