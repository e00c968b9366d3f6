//! Format, lints, documentation, and the tests of the crates.

use xshell::{Shell, cmd};

pub(crate) fn format(shell: &Shell) -> anyhow::Result<()> {
    Ok(cmd!(shell, "cargo fmt --all --check").run()?)
}

pub(crate) fn lints(shell: &Shell) -> anyhow::Result<()> {
    Ok(cmd!(shell, "cargo clippy --workspace --all-targets --quiet -- -D warnings").run()?)
}

pub(crate) fn documentation(shell: &Shell) -> anyhow::Result<()> {
    let _strict = shell.push_env("RUSTDOCFLAGS", "-D warnings");
    Ok(cmd!(shell, "cargo doc --workspace --no-deps --quiet").run()?)
}

pub(crate) fn tests(shell: &Shell) -> anyhow::Result<()> {
    Ok(cmd!(shell, "cargo test --workspace --quiet").run()?)
}
