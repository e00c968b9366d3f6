//! The simulator: whole histories of the real engine on the real embedded store, with virtual time, on a disk that can
//! fail or lose its power at any call.
//!
//! One history is one seed. Its processes run the real [`Engine`](longhaul_engine::Engine), one or several, with real
//! handlers, on a single-threaded runtime with a paused clock, over the real writer and a simulated disk. Between
//! engine and store is a store that delays calls, fails them and loses the responses of commits. A crash drops
//! the runtime with everything in it; only the disk is left, and the next process recovers. Durable changes, responses
//! to clients and actions of handlers are written to a [`ledger`], and [`check`](check::check) checks it against the
//! laws.
//!
//! - [`play`]: one history; [`play_twice`]: the same again.
//! - [`run`]: many, on several threads.
//! - [`coverage`]: counts of what happened in them.
//! - [`mutation`]: faults put into a copy of the code, which have to be found.

#![allow(missing_docs, reason = "fields and variants whose names say what they are")]

mod activity;
pub mod check;
mod client;
pub mod coverage;
mod disk;
pub mod fault;
mod handler;
mod history;
pub mod ledger;
pub mod mutation;
mod process;
mod random;
pub mod run;
mod setup;
mod store;
mod time;
mod world;
mod writer;

pub use history::{HistoryResult, play, play_twice};
