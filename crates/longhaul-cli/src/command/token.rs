//! `longhaul token new`

use std::io::Write as _;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use longhaul::Owner;

use crate::exit::{self, CommandError};
use crate::say::tell;
use crate::token;

#[derive(Debug, Subcommand)]
#[command(after_help = exit::HELP)]
pub enum Token {
    /// Make a token for an owner. It is shown once; the file contains its hash
    New(NewToken),
}

#[derive(Debug, Args)]
#[command(after_help = exit::HELP)]
pub struct NewToken {
    /// The owner: all callers with a token of this owner see the same tasks
    owner: String,
    /// The token file of the server; created if it does not exist
    #[arg(long, value_name = "FILE")]
    token_file: PathBuf,
}

impl Token {
    pub(super) fn run(self) -> Result<(), CommandError> {
        let Self::New(NewToken { owner, token_file }) = self;
        let owner = Owner::parse(&owner).map_err(|error| CommandError::Usage(error.to_string()))?;
        let token = token::add(&token_file, &owner)?;
        // It cannot be shown again, so failing to show it is an error.
        writeln!(std::io::stdout(), "{token}").map_err(|error| CommandError::System("cannot show the token", error))?;
        tell!("This token of {owner} is shown once. A running server accepts it within two seconds.");
        Ok(())
    }
}
