//! `prompts/get`: the messages of a prompt, made while the client waits or as a task.

use std::sync::Arc;

use longhaul_wire::call_result::ResultForm;
use longhaul_wire::jsonrpc::RpcError;
use longhaul_wire::{GetPrompt, RoutedRequest, refusal as wire_refusal};

use super::OperationResult;
use super::call_function::{self, FunctionCall};
use crate::exchange::Exchange;

pub(super) async fn perform(
    exchange: &Exchange,
    request: &RoutedRequest<'_>,
    get: &GetPrompt<'_>,
) -> Result<OperationResult, RpcError> {
    let catalogue = exchange.receiver.catalogue.current();
    exchange.require(catalogue.features().prompts)?;
    let prompt = catalogue.prompts.find(&get.name).ok_or_else(|| wire_refusal::no_such_prompt(&get.name))?;
    prompt.declaration.check_arguments(get.arguments)?;
    let call = FunctionCall {
        engine_name: Arc::clone(&prompt.engine_name),
        input: get.to_input(),
        form: ResultForm::Prompt,
        input_responses: get.input_responses.as_ref(),
        request_state: get.request_state.as_deref(),
        task: get.task.as_ref().filter(|_| prompt.is_durable),
        relay: get.relay.as_ref(),
    };
    call_function::perform(exchange, request, call).await
}
