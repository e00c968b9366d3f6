//! Every limit of tasks and tools: accepted at the limit, refused beyond it with its own code. The limits of sessions
//! are in
//! `sessions` and `streams`, those of rates in `rates`.

mod kit;
mod start;
mod store;
mod tasks;

pub(crate) use kit::waiting;
