//! The simulator: many seeded histories, and mutations of the code that it must detect.

use xshell::{Shell, cmd};

const HISTORIES: &str = "100000";

/// Histories that are played twice, to see that the same seed gives the same history.
const TWICE: &str = "1000";

pub(crate) fn run(shell: &Shell) -> anyhow::Result<()> {
    cmd!(shell, "cargo run --release --quiet -p longhaul-sim -- --histories {TWICE} twice").run()?;
    Ok(cmd!(shell, "cargo run --release --quiet -p longhaul-sim -- --histories {HISTORIES}").run()?)
}

pub(crate) fn mutations(shell: &Shell) -> anyhow::Result<()> {
    Ok(cmd!(shell, "cargo run --release --quiet -p longhaul-sim -- mutations").run()?)
}
