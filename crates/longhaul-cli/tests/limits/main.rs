//! Every limit that a client can reach, reached: taken at its edge, refused past it with its own word. Those of sessions are
//! in `core2025`, those of rates in `rates`.
//!
//! The servers run in the test's process, because the program has no flags for most of these.

mod connections;
mod kit;
mod start;
mod stdio;
mod store;
#[path = "../support/mod.rs"]
mod support;
mod tasks;
mod unread;
