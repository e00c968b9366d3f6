//! Every limit of tasks and tools: taken at its edge, refused past it with its own code. Those of sessions are in `sessions`
//! and `streams`, those of rates in `rates`.

mod kit;
mod start;
mod store;
mod tasks;

pub(crate) use kit::waiting;
