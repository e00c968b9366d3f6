//! The resource templates of the server.

use longhaul_wire::jsonrpc::RpcError;
use longhaul_wire::list::PageEnd;
use longhaul_wire::{refusal as wire_refusal, resource};

use crate::exchange::Exchange;

pub(super) fn perform(exchange: &Exchange, cursor: Option<&str>) -> Result<String, RpcError> {
    let receiver = &exchange.receiver;
    let catalogue = receiver.catalogue.current();
    exchange.require(catalogue.features().resources)?;
    let page = catalogue.templates.page("templates", cursor, receiver.options.list_page_max);
    let page = page.ok_or_else(wire_refusal::no_such_cursor)?;
    let templates: Vec<_> = page.entries.iter().map(|template| &template.declaration).collect();
    let end = PageEnd { next_cursor: page.next_cursor.as_deref(), cache: receiver.list_cache() };
    Ok(resource::list_templates(&exchange.reply_to(), &templates, end))
}
