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

use std::path::Path;

use longhaul_testkit::StatelessClient;

/// A server with the tools for tests on the store in this file, and a client of it.
async fn start(file: &Path) -> (kit::ServerProcess, StatelessClient) {
    kit::Launch::conformance().store(file).start_with_client().await
}
