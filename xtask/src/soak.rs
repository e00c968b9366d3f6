//! `cargo xtask soak`: the stress tests with many more cases.

use xshell::{Shell, cmd};

use crate::step::{self, Step};

const STEPS: &[Step] = &[
    ("kills", kills),
    ("steps", steps),
    ("owners", owners),
    ("scale", scale),
    ("tickets", tickets),
    ("simulator", simulator),
    ("laws", laws),
];

pub(crate) fn run(shell: &Shell) -> anyhow::Result<()> {
    step::run(shell, STEPS, None)
}

/// 200 kills, and 200 kills with accidents in between.
fn kills(shell: &Shell) -> anyhow::Result<()> {
    let _count = shell.push_env("LONGHAUL_KILLS", "200");
    process_test(shell, "kill")
}

/// One owner attacks for ten minutes while another works.
fn owners(shell: &Shell) -> anyhow::Result<()> {
    let _time = shell.push_env("LONGHAUL_ATTACK_SECONDS", "600");
    process_test(shell, "owners")
}

/// Calls of 90 s by published clients without tasks, with the defaults of both sides.
fn tickets(shell: &Shell) -> anyhow::Result<()> {
    let _long = shell.push_env("LONGHAUL_LONG", "1");
    crate::machine::prepare(shell)?;
    crate::peers::config(shell)
}

/// 100,000 tasks that wait for an answer, a family of 10,000, and 1,000 calls that wait.
fn scale(shell: &Shell) -> anyhow::Result<()> {
    let _waiting = shell.push_env("LONGHAUL_WAITING", "100000");
    let _children = shell.push_env("LONGHAUL_CHILDREN", "10000");
    let _calls = shell.push_env("LONGHAUL_CALLS", "1000");
    process_test(shell, "scale")
}

fn process_test(shell: &Shell, test: &str) -> anyhow::Result<()> {
    // The tests start this example, and `cargo test --test` does not build examples.
    cmd!(shell, "cargo build --release -p longhaul-cli --example conformance").run()?;
    Ok(cmd!(shell, "cargo test --release -p longhaul-cli --test {test} -- --nocapture --test-threads=1").run()?)
}

/// A task of 200 steps, killed 30 times.
fn steps(shell: &Shell) -> anyhow::Result<()> {
    let _steps = shell.push_env("LONGHAUL_STEPS", "200");
    let _kills = shell.push_env("LONGHAUL_STEP_KILLS", "30");
    process_test(shell, "durable")
}

fn simulator(shell: &Shell) -> anyhow::Result<()> {
    Ok(cmd!(shell, "cargo run --release -p longhaul-sim -- --histories 2000000").run()?)
}

fn laws(shell: &Shell) -> anyhow::Result<()> {
    let _cases = shell.push_env("PROPTEST_CASES", "20000");
    Ok(cmd!(shell, "cargo test --release -p longhaul-task -p longhaul-wire").run()?)
}
