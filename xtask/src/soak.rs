//! `cargo xtask soak`: the stress tests with many more cases.

use xshell::{Shell, cmd};

use crate::step::{self, Step};

const STEPS: &[Step] = &[("kills", kills), ("simulator", simulator), ("laws", laws)];

pub(crate) fn run(shell: &Shell) -> anyhow::Result<()> {
    step::run(shell, STEPS, None)
}

fn kills(shell: &Shell) -> anyhow::Result<()> {
    // The test starts this example, and `cargo test --test` does not build examples.
    cmd!(shell, "cargo build --release -p longhaul-cli --example conformance").run()?;
    let _count = shell.push_env("LONGHAUL_KILLS", "200");
    Ok(cmd!(shell, "cargo test --release -p longhaul-cli --test kill -- --nocapture").run()?)
}

fn simulator(shell: &Shell) -> anyhow::Result<()> {
    Ok(cmd!(shell, "cargo run --release -p longhaul-sim -- --histories 2000000").run()?)
}

fn laws(shell: &Shell) -> anyhow::Result<()> {
    let _cases = shell.push_env("PROPTEST_CASES", "20000");
    Ok(cmd!(shell, "cargo test --release -p longhaul-task -p longhaul-wire").run()?)
}
