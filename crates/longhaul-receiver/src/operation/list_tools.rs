//! The tools of the server, all on one page.

use longhaul_wire::jsonrpc::RpcError;
use longhaul_wire::{refusal as words, tools_list};

use crate::exchange::Exchange;

pub(super) fn perform(exchange: &Exchange, cursor: Option<&str>) -> Result<String, RpcError> {
    if cursor.is_some() {
        return Err(words::no_such_cursor());
    }
    let receiver = &exchange.receiver;
    let tools = receiver.catalogue.declarations();
    let page =
        tools_list::ToolPage { tools: &tools, next_cursor: None, cache: receiver.list_cache(), may_get_tickets: false };
    Ok(tools_list::answer(&exchange.reply_to(), &page))
}
