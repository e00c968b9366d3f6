//! Tests of what only the built program can show: signals, exit codes, files, flags, the operator's commands.

mod accidents;
mod audit;
mod documented_limits;
#[path = "../kit/mod.rs"]
mod kit;
mod local_user;
mod operator;
mod operator_socket;
mod several_clients;
mod shutdown;
mod smoke;
mod stdio;
mod tokens;
