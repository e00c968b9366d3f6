//! The transports, in process: HTTP over a socket of this machine, pipes in memory.
//!
//! - `bad_requests`, `connections`, `unread`, `health`: what HTTP refuses, and what connections may use.
//! - `stdio`, `stdio_session`: one message a line.
//! - `identity`, `identify`, `token_file`: who is calling.
//! - `audit`: what is written to the audit log, compared with its page.

mod audit;
mod bad_requests;
mod connections;
mod health;
mod identify;
mod identity;
mod stdio;
mod stdio_session;
mod token_file;
mod unread;
