//! `longhaul store backup`

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::exit::{self, CommandError};
use crate::say::say;
use crate::store::OperatorStoreArgument;

#[derive(Debug, Subcommand)]
#[command(after_help = exit::HELP)]
pub enum StoreCommand {
    /// Copy the store into a new file, also while a server uses it
    Backup(BackupCommand),
}

#[derive(Debug, Args)]
#[command(after_help = exit::HELP)]
pub struct BackupCommand {
    /// The new file
    to: PathBuf,
    #[command(flatten)]
    store: OperatorStoreArgument,
}

impl StoreCommand {
    pub(super) async fn run(self) -> Result<(), CommandError> {
        let Self::Backup(BackupCommand { to, store }) = self;
        store.url()?.open_read_only().await?.backup(&to).await?;
        say!("The store is copied to {}.", to.display());
        Ok(())
    }
}
