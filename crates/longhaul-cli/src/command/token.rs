//! `longhaul token new|revoke`

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
    /// Remove all tokens of an owner. Its tasks stay
    Revoke(RevokeTokens),
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

#[derive(Debug, Args)]
#[command(after_help = exit::HELP)]
pub struct RevokeTokens {
    /// The owner
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

fn owner(name: &str) -> Result<Owner, CommandError> {
    Owner::parse(name).map_err(|error| CommandError::Usage(error.to_string()))
}

impl RevokeTokens {
    fn run(self) -> Result<(), CommandError> {
        let owner = owner(&self.owner)?;
        let tokens = match token::revoke(&self.token_file, &owner)? {
            1 => "The token".to_owned(),
            count => format!("The {count} tokens"),
        };
        tell!("{tokens} of {owner} no longer work. A running server refuses them within two seconds.");
        Ok(())
    }
}

impl NewToken {
    fn run(self) -> Result<(), CommandError> {
        let Self { owner: name, token_file } = self;
        let owner = owner(&name)?;
        let token = token::add(&token_file, &owner)?;
        // It cannot be shown again, so failing to show it is an error.
        writeln!(std::io::stdout(), "{token}").map_err(|error| CommandError::System("cannot show the token", error))?;
        tell!("This token of {owner} is shown once. A running server accepts it within two seconds.");
        Ok(())
    }
}
