//! `resources/subscribe`: the session's client is told when a resource changes.

use longhaul_wire::jsonrpc::RpcError;
use longhaul_wire::{acknowledge, resource};

use crate::exchange::Exchange;

pub(super) fn perform(exchange: &Exchange, uri: &str) -> Result<String, RpcError> {
    let catalogue = exchange.receiver.catalogue.current();
    exchange.require(catalogue.features().resources)?;
    catalogue.find_resource(uri).ok_or_else(|| resource::not_found(uri, exchange.peer.revision))?;
    if let Some(session) = &exchange.session {
        session.subscribe_to(uri)?;
    }
    Ok(acknowledge(&exchange.reply_to()))
}
