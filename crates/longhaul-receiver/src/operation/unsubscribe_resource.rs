//! `resources/unsubscribe`: the session's client is no longer told when a resource changes.

use longhaul_wire::acknowledge;
use longhaul_wire::jsonrpc::RpcError;

use crate::exchange::Exchange;

/// Acknowledged for any URI: afterwards the client is not subscribed to it.
pub(super) fn perform(exchange: &Exchange, uri: &str) -> Result<String, RpcError> {
    exchange.require(exchange.receiver.catalogue.current().features().resources)?;
    if let Some(session) = &exchange.session {
        session.unsubscribe_from(uri);
    }
    Ok(acknowledge(&exchange.reply_to()))
}
