//! The transports of MCP: they move messages between a socket or a pipe and the
//! [`Receiver`](longhaul_receiver::Receiver).
//!
//! - [`http`]: Streamable HTTP at `/mcp`, beside it `/healthz` and `/metrics`.
//! - [`stdio`]: the same over standard input and output, one message a line.
//! - [`Identify`]: identifies the caller; the caller's owner becomes the owner of its tasks.
//! - [`ServerLimits`]: what clients may use. [`Metrics`]: what operators watch.

#![allow(missing_docs, reason = "the crate `longhaul` documents what users see")]

mod followed_file;
pub mod http;
mod identity;
mod limits;
mod metrics;
pub mod stdio;
mod unread;

pub use followed_file::{FileCheck, FollowedFile, FollowedFileError};
pub use hyper::HeaderMap;
pub use identity::{
    ANONYMOUS, Anonymous, Credentials, Identify, LOCAL, NotIdentified, TokenError, TokenFile, TokenFileError, Tokens,
    local,
};
pub use limits::ServerLimits;
pub use longhaul_receiver::{Caller, RateLimits, SessionLimits};
pub use metrics::Metrics;
