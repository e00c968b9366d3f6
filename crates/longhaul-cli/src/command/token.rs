//! `longhaul token new`

use std::io::Write as _;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use longhaul::Owner;

use crate::exit::{self, Failed};
use crate::say::tell;
use crate::token;

/// What can be done with tokens.
#[derive(Debug, Subcommand)]
#[command(after_help = exit::HELP)]
pub enum Token {
    /// Make a token for an owner; it is shown this once, and the file keeps its hash
    New(New),
}

/// Whose, and where.
#[derive(Debug, Args)]
#[command(after_help = exit::HELP)]
pub struct New {
    /// Whose it is: everybody with a token of this owner sees the same tasks
    owner: String,
    /// The file that a server is started with; made if it does not exist
    #[arg(long, value_name = "FILE")]
    token_file: PathBuf,
}

impl Token {
    pub(super) fn run(self) -> Result<(), Failed> {
        let Self::New(New { owner, token_file }) = self;
        let owner = Owner::parse(&owner).map_err(|error| Failed::Usage(error.to_string()))?;
        let token = token::add(&token_file, &owner)?;
        // Whoever does not see it now never will, so this must be said or fail.
        writeln!(std::io::stdout(), "{token}").map_err(|error| Failed::System("cannot show the token", error))?;
        tell!("This token of {owner} is shown once. A server that runs with this file knows it in a moment.");
        Ok(())
    }
}
