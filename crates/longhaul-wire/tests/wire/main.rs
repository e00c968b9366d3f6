//! What this crate reads and writes. `sessions` is the era of `initialize`, `stateless` the era after it.

mod common;

mod malformed;
mod prompts;
mod questions;
mod resources;
mod routing;
mod sessions;
mod stateless;
mod tools;
