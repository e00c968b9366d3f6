//! The `longhaul` program as a library, so that a server with its own tools can have the same command line.
//!
//! - [`command`]: one file per command.
//! - [`config`]: the config file of `serve`.
//! - [`demo`]: the tools of `serve --demo`.
//! - [`exit`]: errors and exit codes.
//! - [`operator`]: how an operator's command reaches a running server.

mod audit;
pub mod command;
pub mod config;
pub mod demo;
mod descriptors;
pub mod exit;
mod log;
pub mod operator;
mod output;
mod relay;
mod shown_id;
mod store;
mod store_socket;
mod token;

use std::process::ExitCode;

use clap::Parser;

use crate::command::Command;

/// Durable tasks for MCP: call now, fetch later, survive everything in between.
#[derive(Debug, Parser)]
#[command(name = "longhaul", version, after_help = exit::HELP)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

/// Runs the program with the arguments of the process.
pub fn main() -> ExitCode {
    exit::report(Arguments::parse().command.run())
}
