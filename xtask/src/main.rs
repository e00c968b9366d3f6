//! The development commands of this repository: `cargo xtask test`, `bench`, `soak`.
//!
//! - `test`: all tests. It installs what a fresh machine lacks. One file per step.
//! - `bench`: Longhaul compared with the ceilings and a peer.
//! - `soak`: long runs of the stress tests.

#[cfg(test)]
mod architecture;
mod bench;
mod checks;
mod conformance;
mod ext_tasks;
mod machine;
mod peers;
mod readme;
mod server;
mod simulator;
mod soak;
mod step;
mod test;

use clap::{Parser, Subcommand};
use xshell::Shell;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The development commands of this repository")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run all tests, and install what is missing for them
    Test {
        /// Run only the step with this name, or the steps whose name contains it
        #[arg(long, value_name = "STEP")]
        only: Option<String>,
    },
    /// Measure Longhaul, the ceilings and the peer
    Bench(bench::Bench),
    /// Run the stress tests for a long time
    Soak,
}

fn main() -> anyhow::Result<()> {
    let shell = Shell::new()?;
    shell.change_dir(root());
    match Arguments::parse().command {
        Command::Test { only } => test::run(&shell, only.as_deref()),
        Command::Bench(bench) => bench.run(&shell),
        Command::Soak => soak::run(&shell),
    }
}

/// The directory of built programs: `CARGO_TARGET_DIR`, or `target` in the repository's root.
fn target() -> std::path::PathBuf {
    root().join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

fn root() -> std::path::PathBuf {
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}
