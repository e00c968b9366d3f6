//! The stateful era over a real socket: sessions, tasks, questions, streams. Every message that the server sends is
//! checked against the official schema of its revision.

mod batches;
mod calls;
mod handshake;
mod kit;
mod logging;
mod questions;
mod requestor;
mod restarts;
mod sessions;
mod stdio;
mod streams;
#[path = "../support/mod.rs"]
mod support;
mod tasks;
