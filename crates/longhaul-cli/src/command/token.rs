//! `longhaul token new|revoke`

use std::io::Write as _;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use longhaul::Owner;

use crate::exit::{self, CommandError};
use crate::output::stderr_line;
use crate::token;

#[derive(Debug, Subcommand)]
#[command(after_help = exit::HELP)]
pub enum Token {
    /// Make a token for an owner. It is shown once; the file contains only its hash
    New(NewToken),
    /// Remove all tokens of an owner. The owner's tasks stay
    Revoke(RevokeTokens),
}

#[derive(Debug, Args)]
#[command(after_help = exit::HELP)]
pub struct NewToken {
    /// The owner of the token. All callers with a token of one owner see the same tasks
    owner: String,
    /// The token file of the server; created if it does not exist
    #[arg(long, value_name = "FILE")]
    token_file: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = exit::HELP)]
pub struct RevokeTokens {
    /// The owner of the tokens to remove
    owner: String,
    /// The token file of the server
    #[arg(long, value_name = "FILE")]
    token_file: PathBuf,
}

impl Token {
    pub(super) fn run(self) -> Result<(), CommandError> {
        match self {
            Self::New(new) => new.run(),
            Self::Revoke(revoke) => revoke.run(),
        }
    }
}

const NOT_SHOWN: &str = "the new token could not be written to standard output; delete its line, the last one, from the \
                         token file, and run the command again";

fn parse_owner(name: &str) -> Result<Owner, CommandError> {
    Owner::parse(name).map_err(|error| CommandError::Usage(format!("the owner's name cannot be used: {error}")))
}

impl RevokeTokens {
    fn run(self) -> Result<(), CommandError> {
        let owner = parse_owner(&self.owner)?;
        let removed = match token::revoke(&self.token_file, &owner)? {
            1 => format!("The token of {owner} is removed"),
            count => format!("The {count} tokens of {owner} are removed"),
        };
        stderr_line!("{removed}. A running server notices this within two seconds.");
        Ok(())
    }
}

impl NewToken {
    fn run(self) -> Result<(), CommandError> {
        let Self { owner: name, token_file } = self;
        let owner = parse_owner(&name)?;
        let token = token::add(&token_file, &owner)?;
        // The token cannot be shown again, so even a closed pipe is an error.
        writeln!(std::io::stdout(), "{token}").map_err(|error| CommandError::System(NOT_SHOWN, error))?;
        stderr_line!("This token of {owner} is shown once. A running server accepts it within two seconds.");
        Ok(())
    }
}
