//! What is done to this repository: `cargo xtask test`, `bench`, `soak`.
//!
//! - `test`: everything there is, on a fresh machine, installing what is missing. One file per part.
//! - `bench`: ours, the ceilings and the peer, in turns.
//! - `soak`: the long runs of the same stress tests.

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
#[command(name = "cargo xtask", about = "What is done to this repository")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run every test there is, installing what is missing
    Test {
        /// Only the parts whose name contains this
        #[arg(long, value_name = "PART")]
        only: Option<String>,
    },
    /// Measure against the ceilings and the peer
    Bench(bench::Bench),
    /// The long runs of the stress tests
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

/// The repository's root.
fn root() -> std::path::PathBuf {
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}
