//! The SQLite backend: what every store promises, and what a file goes through.

mod backup;
#[path = "../common/mod.rs"]
mod common;
mod contract;
mod full;
mod open;
