//! Answers the messages of MCP clients: the same code for every transport, revision and task generation.
//!
//! ```text
//!  bytes, caller, headers ──► entrance ──► session or stateless ──► route (wire) ──► operation ──► engine
//!                                                                                         │
//!  MessageResponse ◄── one message or a stream ◄─────────────── generation (wire) ◄───────┘
//! ```
//!
//! - [`Receiver`]: the entrance for HTTP. [`Connection`]: the entrance for pipes. [`MemoryClient`]: a client in this
//!   process, for tests.
//! - `session/`: the stateful era: tokens, streams that can be resumed, followed tasks, questions to the client.
//! - `stateless.rs`: the stateless era. `operation/`: what clients can ask for, one file each.
//! - `ticket/`: what clients without tasks get, and the tools for them, one file each.
//! - `rates.rs`, `audit.rs`, `seal.rs`: how often an owner may ask, what is logged, what clients keep for the server.

#![allow(missing_docs, reason = "the crate `longhaul` documents what users see")]

pub mod audit;
mod caller;
mod catalogue;
mod connection;
mod entrance;
mod exchange;
mod idempotency;
mod loaded_task;
mod log;
mod memory;
mod operation;
mod rates;
mod receiver;
mod refusal;
mod response;
mod seal;
mod session;
mod stateless;
mod stream;
mod ticket;

pub use caller::Caller;
pub use catalogue::{
    Catalogue, CatalogueEntry, CatalogueError, CataloguePrompt, CatalogueResource, CatalogueTool, Completions,
    EntryName,
};
pub use connection::Connection;
pub use memory::MemoryClient;
pub use rates::{RateLimits, RequestKind};
pub use receiver::{Receiver, ReceiverOptions, WeakReceiver};
pub use refusal::SOON_MS;
pub use response::{Body, HttpHead, MessageResponse, MetricsLabel};
pub use session::SessionLimits;
pub use stream::StreamReader;
pub use ticket::{CallRules, TicketOptions};
