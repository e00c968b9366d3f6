//! Clients of other projects, each with tests of the whole life of a task: see `interop/README.md`.
//!
//! The tests start their servers themselves, over HTTP and over stdio, from the program in `LONGHAUL_PROGRAM`.

use std::path::PathBuf;

use xshell::{Shell, cmd};

use crate::server;

pub(crate) fn sdk(shell: &Shell) -> anyhow::Result<()> {
    node(shell, "sdk", server::program(shell)?)
}

pub(crate) fn ext_tasks_stateful(shell: &Shell) -> anyhow::Result<()> {
    node(shell, "ext-tasks-legacy", server::program(shell)?)
}

pub(crate) fn mcpdo(shell: &Shell) -> anyhow::Result<()> {
    node(shell, "mcpdo", server::program(shell)?)
}

/// Pages in Chromium, against `longhaul serve --demo`, and Inspector, against the example `report_service`.
pub(crate) fn browser(shell: &Shell) -> anyhow::Result<()> {
    cmd!(shell, "cargo build --release --quiet -p longhaul-cli --bin longhaul").run()?;
    cmd!(shell, "cargo build --release --quiet -p longhaul --example report_service").run()?;
    let _service = shell.push_env("LONGHAUL_REPORT_SERVICE", crate::target().join("release/examples/report_service"));
    node(shell, "browser", crate::target().join("release/longhaul"))
}

/// The commands of `interop/config/longhaul.toml`, served by `longhaul`: clients that know no tasks, the tasks client, Inspector.
pub(crate) fn config(shell: &Shell) -> anyhow::Result<()> {
    cmd!(shell, "cargo build --release --quiet -p longhaul-cli --bin longhaul").run()?;
    let program = crate::target().join("release/longhaul");
    node(shell, "config", program.clone())?;
    let _program = shell.push_env("LONGHAUL_PROGRAM", program);
    unittest(shell, "interop/config")
}

/// Runs a script of `interop/package.json` against this program.
fn node(shell: &Shell, script: &str, program: PathBuf) -> anyhow::Result<()> {
    let _program = shell.push_env("LONGHAUL_PROGRAM", program);
    let _interop = shell.push_dir("interop");
    Ok(cmd!(shell, "npm run --silent {script}").run()?)
}

pub(crate) fn python(shell: &Shell) -> anyhow::Result<()> {
    let _program = shell.push_env("LONGHAUL_PROGRAM", server::program(shell)?);
    unittest(shell, "interop/python")
}

/// Runs the Python tests in a folder.
fn unittest(shell: &Shell, folder: &str) -> anyhow::Result<()> {
    let environment = crate::target().join("interop-python");
    let python = environment.join("bin/python");
    if !python.exists() {
        cmd!(shell, "python3 -m venv {environment}").run()?;
    }
    // This is quick if everything is installed.
    cmd!(shell, "{python} -m pip install --quiet --disable-pip-version-check -r interop/requirements.txt").run()?;
    let _interop = shell.push_dir(folder);
    let _clean = shell.push_env("PYTHONDONTWRITEBYTECODE", "1");
    // Both libraries warn about the stateful era, which these tests use.
    Ok(cmd!(shell, "{python} -W ignore -m unittest --verbose").run()?)
}

pub(crate) fn rmcp(shell: &Shell) -> anyhow::Result<()> {
    let _program = shell.push_env("LONGHAUL_PROGRAM", server::program(shell)?);
    let _own = shell.push_env("CARGO_TARGET_DIR", crate::root().join("target/interop-rmcp"));
    let _workspace = shell.push_dir("interop/rmcp");
    Ok(cmd!(shell, "cargo test --locked --quiet").run()?)
}
