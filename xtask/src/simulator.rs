//! The simulator: many seeded histories, and mutations of the code that it must detect.

use xshell::{Shell, cmd};

const HISTORIES: &str = "100000";

pub(crate) fn run(shell: &Shell) -> anyhow::Result<()> {
    Ok(cmd!(shell, "cargo run --release --quiet -p longhaul-sim -- --histories {HISTORIES}").run()?)
}

pub(crate) fn mutations(shell: &Shell) -> anyhow::Result<()> {
    Ok(cmd!(shell, "cargo run --release --quiet -p longhaul-sim -- mutations").run()?)
}
