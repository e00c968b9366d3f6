//! What goes back.

use async_trait::async_trait;
use longhaul_wire::jsonrpc::{self, RequestId, RpcError};

/// What goes back to whoever sent a message.
pub enum Reply {
    /// One JSON-RPC response, and the HTTP status that goes with it.
    Message {
        /// The response.
        text: String,
        /// The status, for transports that have one.
        status: u16,
    },
    /// Several messages, the last of them the response. Dropping the stream ends the request.
    Stream(Box<dyn Messages>),
}

/// A stream of JSON-RPC messages.
#[async_trait]
pub trait Messages: Send {
    /// The next message; none after the last.
    async fn next(&mut self) -> Option<String>;
}

impl Reply {
    pub(crate) fn ok(text: String) -> Self {
        Self::Message { text, status: 200 }
    }

    /// The refusal of a request, of which the ID may not even be known.
    pub fn refusal(id: Option<&RequestId>, error: &RpcError) -> Self {
        Self::Message { text: jsonrpc::error(id, error), status: error.http_status() }
    }
}
