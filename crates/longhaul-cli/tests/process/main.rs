//! Tests that need a process: signals, exit codes, files, flags, the operator's commands.

mod audit;
mod documented_limits;
#[path = "../kit/mod.rs"]
mod kit;
mod local_user;
mod operator;
mod shutdown;
mod smoke;
mod stdio;
mod tokens;
