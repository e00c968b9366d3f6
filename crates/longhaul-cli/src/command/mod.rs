//! One file per command.

pub mod config;
mod guard;
mod history;
pub mod serve;
pub mod store;
pub mod task;
pub mod token;

use clap::Subcommand;

use crate::exit::CommandError;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the server: MCP at /mcp, health at /healthz, metrics at /metrics
    Serve(serve::Serve),
    /// Look at the tasks in a store, or cancel one
    #[command(subcommand)]
    Task(task::TaskCommand),
    /// Back up the store, or check it
    #[command(subcommand)]
    Store(store::StoreCommand),
    /// Check or make a config file, or print the configuration for a host
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Make and revoke tokens of callers
    #[command(subcommand)]
    Token(token::Token),
    /// Wait until the server that started this process is gone, and end the commands that it left behind
    #[command(hide = true)]
    Guard,
}

impl Command {
    pub fn run(self) -> Result<(), CommandError> {
        match self {
            Self::Serve(serve) => serve.guarded().run(longhaul::Server::new("longhaul")),
            Self::Task(task) => block_on(task.run()),
            Self::Store(store) => block_on(store.run()),
            Self::Config(config) => config.run(),
            Self::Token(token) => token.run(),
            Self::Guard => guard::run(),
        }
    }
}

fn block_on(work: impl Future<Output = Result<(), CommandError>>) -> Result<(), CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| CommandError::System("cannot start the runtime", error))?.block_on(work)
}
