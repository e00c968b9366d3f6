//! The `longhaul` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    longhaul_cli::main()
}
