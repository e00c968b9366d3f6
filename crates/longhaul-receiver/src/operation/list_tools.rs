//! The tools of the server.

use longhaul_wire::jsonrpc::RpcError;
use longhaul_wire::list::PageEnd;
use longhaul_wire::{refusal as wire_refusal, tools_list};

use crate::exchange::Exchange;
use crate::ticket;

pub(super) fn perform(exchange: &Exchange, cursor: Option<&str>) -> Result<String, RpcError> {
    let receiver = &exchange.receiver;
    let catalogue = receiver.catalogue.current();
    let page = catalogue.tools.page("tools", cursor, receiver.options.list_page_max);
    let page = page.ok_or_else(wire_refusal::no_such_cursor)?;
    let mut tools: Vec<_> = page.entries.iter().map(|tool| &tool.declaration).collect();
    let tickets = receiver.tickets();
    if page.next_cursor.is_none() {
        let offered = tickets.iter().flat_map(|tickets| tickets.offered_to(exchange));
        tools.extend(offered.map(|(_, declaration)| declaration));
    }
    let may_get_tickets = tickets.is_some() && ticket::is_for(exchange);
    let end = PageEnd { next_cursor: page.next_cursor.as_deref(), cache: receiver.list_cache() };
    Ok(tools_list::answer(&exchange.reply_to(), &tools_list::ToolPage { tools: &tools, end, may_get_tickets }))
}
