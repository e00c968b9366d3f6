//! The prompts of the server.

use longhaul_wire::jsonrpc::RpcError;
use longhaul_wire::list::PageEnd;
use longhaul_wire::{prompt, refusal as wire_refusal};

use crate::exchange::Exchange;

pub(super) fn perform(exchange: &Exchange, cursor: Option<&str>) -> Result<String, RpcError> {
    let receiver = &exchange.receiver;
    let catalogue = receiver.catalogue.current();
    exchange.require(catalogue.features().prompts)?;
    let page = catalogue.prompts.page("prompts", cursor, receiver.options.list_page_max);
    let page = page.ok_or_else(wire_refusal::no_such_cursor)?;
    let prompts: Vec<_> = page.entries.iter().map(|prompt| &prompt.declaration).collect();
    let end = PageEnd { next_cursor: page.next_cursor.as_deref(), cache: receiver.list_cache() };
    Ok(prompt::list(&exchange.reply_to(), &prompts, end))
}
