//! `completion/complete`: suggestions for an argument of a prompt or a variable of a resource template.

use std::sync::Arc;

use longhaul_wire::call_result::{self, ResultForm};
use longhaul_wire::completion::{self, Complete, CompletionTarget};
use longhaul_wire::jsonrpc::RpcError;
use longhaul_wire::resource::ResourceAddress;
use longhaul_wire::{RoutedRequest, refusal as wire_refusal};

use super::OperationResult;
use super::call_function::{self, FunctionCall};
use crate::exchange::Exchange;

pub(super) async fn perform(
    exchange: &Exchange,
    request: &RoutedRequest<'_>,
    complete: &Complete<'_>,
) -> Result<OperationResult, RpcError> {
    let catalogue = exchange.receiver.catalogue.current();
    exchange.require(catalogue.features().completions)?;
    let (has_argument, completions) = match &complete.target {
        CompletionTarget::Prompt(name) => {
            let prompt = catalogue.prompts.find(name).ok_or_else(|| wire_refusal::no_such_prompt(name))?;
            (prompt.declaration.has_argument(&complete.argument), prompt.completions.as_ref())
        }
        CompletionTarget::Template(text) => {
            let found = catalogue.templates.find(text).or_else(|| catalogue.find_resource(text));
            let resource = found.ok_or_else(|| wire_refusal::no_such_template(text))?;
            let has_variable = match resource.declaration.address() {
                ResourceAddress::Template(template) => template.variables().any(|name| name == complete.argument),
                ResourceAddress::Uri(_) => false,
            };
            (has_variable, resource.completions.as_ref())
        }
    };
    if !has_argument {
        return Err(wire_refusal::no_such_argument(&complete.argument));
    }
    let completes = |name: &String| *name == complete.argument;
    let Some(completions) = completions.filter(|completions| completions.arguments.iter().any(completes)) else {
        let nothing = completion::result(&[]);
        let response = call_result::complete_as(ResultForm::Completion, &exchange.reply_to(), &nothing);
        return Ok(OperationResult::Ready(response));
    };
    let call = FunctionCall {
        engine_name: Arc::clone(&completions.engine_name),
        input: complete.to_input(),
        form: ResultForm::Completion,
        input_responses: None,
        request_state: None,
        task: None,
        relay: None,
    };
    call_function::perform(exchange, request, call).await
}
