//! Runs the tests of the official tasks client against the `conformance` example.

use xshell::{Shell, cmd};

use crate::server::Server;

pub(crate) fn run(shell: &Shell) -> anyhow::Result<()> {
    let server = Server::start(shell)?;
    let _interop = shell.push_dir("interop");
    let _url = shell.push_env("LONGHAUL_URL", server.url());
    Ok(cmd!(shell, "npm test --silent").run()?)
}
