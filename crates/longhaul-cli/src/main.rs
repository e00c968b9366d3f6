//! The `longhaul` program.

use std::process::ExitCode;

/// A quarter more creations a second than with the system's allocator, and memory is returned after large results.
/// Without huge pages, which would double the memory of an idle server.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    longhaul_cli::main()
}
