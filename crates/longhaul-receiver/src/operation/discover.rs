//! The description of the server, for clients of the stateless era.

use longhaul_wire::{Revision, discover};

use crate::exchange::Exchange;

pub(super) fn perform(exchange: &Exchange) -> String {
    let receiver = &exchange.receiver;
    let versions = Revision::STATELESS.map(Revision::as_str);
    let discovered = discover::Discovery {
        versions: &versions,
        features: receiver.catalogue.current().features(),
        instructions: receiver.options.instructions.as_deref(),
        cache: receiver.list_cache(),
    };
    discover::answer(&exchange.reply_to(), &discovered)
}
