//! `tools/call`: whether it becomes a task, waits for one, or runs while the client waits.

use std::collections::HashMap;
use std::sync::Arc;

use longhaul_task::Json;
use longhaul_wire::call_result::{self, ResultForm};
use longhaul_wire::jsonrpc::RpcError;
use longhaul_wire::tool::TaskSupport;
use longhaul_wire::{CallMode, CallTool, Headers, RoutedRequest, headers as wire_headers, refusal as wire_refusal};

use super::checked_call::CheckedCall;
use super::{CallWait, OperationResult, StreamWork};
use crate::catalogue::CatalogueTool;
use crate::exchange::Exchange;
use crate::ticket::{self, RelayedCall, WaitingCall};
use crate::{CallRules, idempotency, refusal};

pub(super) async fn perform(
    exchange: &Exchange,
    request: &RoutedRequest<'_>,
    call: &CallTool<'_>,
    headers: Option<&(dyn Headers + Sync)>,
) -> Result<OperationResult, RpcError> {
    let catalogue = exchange.receiver.catalogue.current();
    let Some(offered) = catalogue.tools.find(&call.name) else {
        // Boxed, because it would make the future of every call larger.
        let ticket = Box::pin(ticket::perform(exchange, &call.name, call.arguments, request.progress_token.as_ref()));
        return ticket.await.unwrap_or_else(|| Err(wire_refusal::no_such_tool(&call.name)));
    };
    if let Some(headers) = headers.filter(|_| exchange.session.is_none()) {
        wire_headers::check_mirrored(headers, &offered.declaration, call.arguments)?;
    }
    let mode = exchange.generation.call_mode(call, &offered.declaration, exchange.peer)?;
    let as_task = mode != CallMode::Ordinary;
    let waits = !as_task && ticket_waits(exchange, offered);
    if !as_task && !waits && offered.declaration.task_support() == TaskSupport::Required {
        return Err(wire_refusal::task_required(&offered.name));
    }
    if call.is_repeated && !as_task && !waits {
        return Err(wire_refusal::not_repeated());
    }
    if let Err(wrong) = offered.declaration.check_arguments(call.arguments) {
        return Ok(OperationResult::Ready(call_result::complete(&exchange.reply_to(), &wrong.to_result())));
    }
    let chosen_id = call.task.as_ref().filter(|_| as_task).and_then(|request| request.id.clone());
    let chosen = chosen_id.map(|id| exchange.chosen_key(id)).transpose()?;
    // The key has no effect on a call without a task. A chosen ID takes the place of the client's own key. The key of a relay is
    // used beside a chosen ID: it distinguishes the repeated call from another call under the same ID.
    let uses_key = (as_task && (chosen.is_none() || call.relayed_ms.is_some())) || waits;
    let idempotency = if uses_key { idempotency::of_call(exchange, call, headers)? } else { None };
    let mut checked = CheckedCall {
        exchange: exchange.clone(),
        tool: Arc::clone(&offered.name),
        catalogue_tool: Some(Arc::clone(offered)),
        input: Json::from_text(call.arguments.get()),
        form: ResultForm::Tool,
        mode,
        ttl: call.task.as_ref().map(|request| request.ttl).unwrap_or_default(),
        chosen,
        is_repeated: call.is_repeated,
        progress_token: request.progress_token.clone(),
        log_level: request.log_level,
        answers: HashMap::new(),
        task_id: None,
        idempotency: idempotency.map(Box::new),
    };
    checked.take_answers(call.request_state.as_deref(), call.input_responses.as_ref()).await?;
    if waits {
        let relay = call.relayed_ms.map(|sent_ms| RelayedCall { sent_ms, is_repeated: call.is_repeated });
        return Box::pin(wait(checked, &offered.rules, relay)).await;
    }
    if checked.needs_stream() { Ok(Box::pin(checked.run_on_stream()).await) } else { checked.run_at_once().await }
}

/// Whether an ordinary call creates a task and waits for it.
fn ticket_waits(exchange: &Exchange, offered: &CatalogueTool) -> bool {
    exchange.receiver.tickets().is_some()
        && offered.declaration.task_support() != TaskSupport::Forbidden
        && !exchange.receiver.engine.asks_before_task(&offered.name)
}

/// Creates a task and waits for it, for a client that takes no task.
async fn wait(call: CheckedCall, rules: &CallRules, relay: Option<RelayedCall>) -> Result<OperationResult, RpcError> {
    let retention = call.exchange.receiver.engine.retention(&call.tool);
    let retention = call.retention(retention.map_err(|error| refusal::of_engine(&error))?);
    let CheckedCall { exchange, tool, input, progress_token, log_level, answers, task_id, idempotency, .. } = call;
    let waiting = WaitingCall {
        exchange: exchange.clone(),
        tool: Arc::clone(&tool),
        input,
        retention,
        token: progress_token,
        log_level,
        rules: rules.clone(),
        idempotency,
        relay,
    };
    let awaited = waiting.awaited_task(task_id).await?;
    if exchange.session.is_none() && waiting.token.is_none() && log_level.is_none() {
        return Ok(OperationResult::Ready(waiting.run(awaited, answers, None).await?));
    }
    Ok(OperationResult::Work(StreamWork {
        exchange,
        task: Some(awaited.id().clone()),
        creation: None,
        call: Some(CallWait::Patience),
        tool: Some(tool),
        run: Box::new(move |stream| {
            Box::pin(async move { Ok(waiting.run(awaited, answers, Some(stream)).await?.into()) })
        }),
    }))
}
