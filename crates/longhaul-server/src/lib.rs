//! The MCP endpoint: gets messages from a socket or a pipe to the [`Receiver`](longhaul_receiver::Receiver), and
//! answers back.
//!
//! - [`http`]: Streamable HTTP at `/mcp`, beside it `/healthz` and `/metrics`.
//! - [`stdio`]: the same over standard input and output, one message a line.
//! - [`Identity`]: who is calling. It comes from the transport and becomes the task's owner.
//! - [`Limits`]: what a client may use.
//! - [`Metrics`]: what an operator watches.

pub mod http;
mod identity;
mod limits;
mod metrics;
mod sessions;
pub mod stdio;
mod unread;

pub use identity::{Identity, NotIdentified, TokenError, Tokens};
pub use limits::Limits;
pub use longhaul_receiver::RateLimits;
pub use longhaul_receiver::core2025::SessionLimits;
pub use metrics::Metrics;
