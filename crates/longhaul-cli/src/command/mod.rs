//! One file per command.

pub mod serve;
pub mod store;
pub mod task;
pub mod token;

use clap::Subcommand;

use crate::exit::Failed;

/// What the program can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the server: MCP at /mcp, health at /healthz, metrics at /metrics
    Serve(serve::Serve),
    /// Look at the tasks of this machine's store, or cancel one
    #[command(subcommand)]
    Task(task::Task),
    /// Take care of the store
    #[command(subcommand)]
    Store(store::Store),
    /// Say who may call
    #[command(subcommand)]
    Token(token::Token),
}

impl Command {
    /// Carries the command out.
    pub fn run(self) -> Result<(), Failed> {
        match self {
            Self::Serve(serve) => serve.run(longhaul::Server::new("longhaul")),
            Self::Task(task) => block_on(task.run()),
            Self::Store(store) => block_on(store.run()),
            Self::Token(token) => token.run(),
        }
    }
}

fn block_on(work: impl Future<Output = Result<(), Failed>>) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failed::System("cannot start the runtime", error))?.block_on(work)
}
