//! The MCP endpoint: gets messages from a socket or a pipe to the [`Receiver`](longhaul_receiver::Receiver), and
//! answers back.
//!
//! - [`http`]: Streamable HTTP at `/mcp`, beside it `/healthz` and `/metrics`.
//! - [`stdio`]: the same over standard input and output, one message a line.
//! - [`Identify`]: who is calling. It comes from the transport and becomes the task's owner.
//! - [`Limits`]: what a client may use.
//! - [`Metrics`]: what an operator watches.

pub mod http;
mod identity;
mod limits;
mod metrics;
pub mod stdio;
mod unread;

pub use axum::http::HeaderMap;
pub use identity::{
    ANONYMOUS, Anonymous, Identify, LOCAL, NotIdentified, Presented, TokenError, TokenFile, TokenFileError, Tokens,
    local,
};
pub use limits::Limits;
pub use longhaul_receiver::{Caller, RateLimits, SessionLimits};
pub use metrics::Metrics;
