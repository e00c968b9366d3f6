//! What goes back.

use async_trait::async_trait;
use longhaul_wire::jsonrpc::{self, RequestId, RpcError};

/// What goes back to whoever sent a message.
pub enum Reply {
    /// One JSON-RPC response.
    Message {
        /// The response.
        text: String,
        /// What goes with it.
        http: Http,
    },
    /// Several messages, the last of them the response. Dropping the stream ends the request.
    Stream(Box<dyn Messages>),
}

/// What goes with a response over HTTP. Other transports have no use for it: whatever matters is in the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Http {
    /// The status.
    pub status: u16,
    /// After how long it is worth trying again.
    pub retry_after_ms: Option<u64>,
}

impl Http {
    /// Nothing out of the ordinary.
    pub const OK: Self = Self { status: 200, retry_after_ms: None };
}

impl From<&RpcError> for Http {
    fn from(error: &RpcError) -> Self {
        Self { status: error.http_status(), retry_after_ms: error.retry_after_ms() }
    }
}

/// A stream of JSON-RPC messages.
#[async_trait]
pub trait Messages: Send {
    /// The next message; none after the last.
    async fn next(&mut self) -> Option<String>;
}

impl Reply {
    pub(crate) fn ok(text: String) -> Self {
        Self::Message { text, http: Http::OK }
    }

    /// The refusal of a request, of which the ID may not even be known.
    pub fn refusal(id: Option<&RequestId>, error: &RpcError) -> Self {
        Self::Message { text: jsonrpc::error(id, error), http: error.into() }
    }
}
