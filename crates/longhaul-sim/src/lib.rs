//! The simulator: whole histories of the real core and the real group-committing writer, with virtual time, on a disk
//! that can fail or lose its power at any call.
//!
//! One history is one seed. Its process has the engine's [`Core`](longhaul_engine::core::Core), the store's
//! [`Writer`](longhaul_store::embedded::Writer) with its working state, and the published cache; the part of the async
//! shell is played step by step, in an order that the seed chooses. When the process dies, only the disk is left, and
//! another process recovers. Everything that the disk made durable, that clients were told and that handlers did goes
//! into a [`ledger`], and [`check`](check::check) holds that against the laws.
//!
//! - [`play`]: one history.
//! - [`run`]: many, on several threads.
//! - [`coverage`]: what they met.
//! - [`mutation`]: faults put into a copy of the code, which have to be found.

mod chance;
pub mod check;
mod client;
pub mod coverage;
mod disk;
pub mod fault;
pub mod ledger;
pub mod mutation;
mod outside;
pub mod run;
mod setup;
mod shell;
mod time;
mod world;

pub use world::{Played, play};
