//! What this crate reads and writes. `sessions` is the era of `initialize`, `stateless` the era after it.

mod common;

mod lesson;
mod malformed;
mod prompts;
mod questions;
mod resources;
mod routing;
mod sep1686;
mod sessions;
mod stateless;
mod tools;
