//! The SQLite backend: what every store promises, and what a file goes through.

mod accident;
mod backup;
#[path = "../common/mod.rs"]
mod common;
mod contract;
mod damage;
mod full;
mod open;
