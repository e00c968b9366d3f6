//! Requests other than `tools/call` whose results functions of the engine make: prompts, resources, completions.

use std::collections::HashMap;
use std::sync::Arc;

use longhaul_task::Json;
use longhaul_wire::call_result::ResultForm;
use longhaul_wire::jsonrpc::RpcError;
use longhaul_wire::{CallMode, InputResponses, RelayMark, RoutedRequest, TaskRequest};

use super::OperationResult;
use super::checked_call::CheckedCall;
use crate::exchange::Exchange;
use crate::idempotency;

/// The call of such a function.
pub(super) struct FunctionCall<'a> {
    /// The name under which the engine runs the function.
    pub(super) engine_name: Arc<str>,
    /// The parameters of the request.
    pub(super) input: Json,
    pub(super) form: ResultForm,
    pub(super) input_responses: Option<&'a InputResponses<'a>>,
    pub(super) request_state: Option<&'a str>,
    /// The task that it becomes.
    pub(super) task: Option<&'a TaskRequest>,
    pub(super) relay: Option<&'a RelayMark<'a>>,
}

/// Runs a function as a task, or while the client waits.
pub(super) async fn perform(
    exchange: &Exchange,
    request: &RoutedRequest<'_>,
    call: FunctionCall<'_>,
) -> Result<OperationResult, RpcError> {
    let chosen_id = call.task.and_then(|task| task.id.clone());
    let relay = call.relay.filter(|_| call.task.is_some());
    let idempotency = relay
        .map(|mark| idempotency::of_request(exchange, &mark.key, &call.engine_name, call.input.as_str(), call.task));
    let mut checked = CheckedCall {
        exchange: exchange.clone(),
        tool: call.engine_name,
        catalogue_tool: None,
        input: call.input,
        form: call.form,
        mode: call.task.map_or(Ok(CallMode::Ordinary), |task| exchange.generation.task_mode(task))?,
        ttl: call.task.map(|task| task.ttl).unwrap_or_default(),
        chosen: chosen_id.map(|id| exchange.chosen_key(id)).transpose()?,
        is_repeated: relay.is_some_and(|mark| mark.is_repeated),
        progress_token: request.progress_token.clone(),
        log_level: request.log_level,
        answers: HashMap::new(),
        task_id: None,
        idempotency: idempotency.transpose()?.map(Box::new),
    };
    checked.take_answers(call.request_state, call.input_responses).await?;
    if checked.needs_stream() { Ok(Box::pin(checked.run_on_stream()).await) } else { checked.run_at_once().await }
}
