//! `resources/read`: the contents of a resource, read while the client waits or as a task.

use std::sync::Arc;

use longhaul_wire::call_result::ResultForm;
use longhaul_wire::jsonrpc::RpcError;
use longhaul_wire::{Cache, ReadResource, RoutedRequest, resource};

use super::OperationResult;
use super::call_function::{self, FunctionCall};
use crate::exchange::Exchange;

pub(super) async fn perform(
    exchange: &Exchange,
    request: &RoutedRequest<'_>,
    read: &ReadResource<'_>,
) -> Result<OperationResult, RpcError> {
    let catalogue = exchange.receiver.catalogue.current();
    exchange.require(catalogue.features().resources)?;
    let found = catalogue.find_resource(&read.uri);
    let found = found.ok_or_else(|| resource::not_found(&read.uri, exchange.peer.revision))?;
    // A result that depends on answers of the client is not cached: they are not part of what a cache looks it up by.
    let has_answers = read.input_responses.is_some() || read.request_state.is_some();
    let call = FunctionCall {
        engine_name: Arc::clone(&found.engine_name),
        input: read.to_input(),
        form: ResultForm::Resource(if has_answers { Cache::NONE } else { found.cache }),
        input_responses: read.input_responses.as_ref(),
        request_state: read.request_state.as_deref(),
        task: read.task.as_ref().filter(|_| found.is_durable),
        relay: read.relay.as_ref(),
    };
    call_function::perform(exchange, request, call).await
}
