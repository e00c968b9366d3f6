//! `longhaul store backup`

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::exit::{self, Failed};
use crate::say::say;
use crate::store::FileArgument;

/// What can be done with the store.
#[derive(Debug, Subcommand)]
#[command(after_help = exit::HELP)]
pub enum Store {
    /// Copy the store into a new file, while a server runs or not
    Backup(Backup),
}

/// Where to.
#[derive(Debug, Args)]
#[command(after_help = exit::HELP)]
pub struct Backup {
    /// The new file
    to: PathBuf,
    #[command(flatten)]
    store: FileArgument,
}

impl Store {
    pub(super) fn run(self) -> Result<(), Failed> {
        let Self::Backup(Backup { to, store }) = self;
        longhaul_store_sqlite::backup(store.file()?, &to)?;
        say!("The store is copied to {}.", to.display());
        Ok(())
    }
}
