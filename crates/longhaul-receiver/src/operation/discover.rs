//! The description of the server, for clients of the stateless era.

use longhaul_wire::{Revision, discover};

use crate::exchange::Exchange;

pub(super) fn perform(exchange: &Exchange) -> String {
    let shared = &exchange.shared;
    let versions = Revision::STATELESS.map(Revision::as_str);
    let discovered = discover::Discovery {
        versions: &versions,
        tells_tool_changes: false,
        instructions: shared.options.instructions.as_deref(),
        cache: shared.list_cache(),
    };
    discover::answer(&exchange.reply_to(), &discovered)
}
