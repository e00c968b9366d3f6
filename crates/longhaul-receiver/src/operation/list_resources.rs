//! The resources of the server that have a URI of their own.

use longhaul_wire::jsonrpc::RpcError;
use longhaul_wire::list::PageEnd;
use longhaul_wire::{refusal as wire_refusal, resource};

use crate::exchange::Exchange;

pub(super) fn perform(exchange: &Exchange, cursor: Option<&str>) -> Result<String, RpcError> {
    let receiver = &exchange.receiver;
    let catalogue = receiver.catalogue.current();
    exchange.require(catalogue.features().resources)?;
    let page = catalogue.resources.page("resources", cursor, receiver.options.list_page_max);
    let page = page.ok_or_else(wire_refusal::no_such_cursor)?;
    let resources: Vec<_> = page.entries.iter().map(|resource| &resource.declaration).collect();
    let end = PageEnd { next_cursor: page.next_cursor.as_deref(), cache: receiver.list_cache() };
    Ok(resource::list(&exchange.reply_to(), &resources, end))
}
