//! The transports, in process: HTTP over a socket of this machine, pipes in memory.
//!
//! - `bad_requests`, `connections`, `unread`, `health`: requests that HTTP refuses, and limits of connections.
//! - `cors`: pages in browsers. `stopping`: requests at the end of a server.
//! - `fair`: what one owner uses does not harm another.
//! - `stdio`, `stdio_session`: one message per line.
//! - `identity`, `identify`, `token_file`: the identity of the caller.
//! - `audit`: the audit log, compared with `docs/audit.md`.

mod audit;
mod bad_requests;
mod connections;
mod cors;
mod fair;
mod health;
mod identify;
mod identity;
mod stdio;
mod stdio_session;
mod stopping;
mod token_file;
mod unread;
