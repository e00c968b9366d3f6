//! The store that a command works on.

use std::path::PathBuf;

use longhaul::StoreUrl;

use crate::exit::Failed;

/// `--store`, and where it is when nobody says.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct StoreArgument {
    /// Where tasks are kept: `sqlite:PATH` or `memory:` [default: SQLite in your data directory]
    #[arg(long, value_name = "URL", env = "LONGHAUL_STORE")]
    store: Option<StoreUrl>,
}

impl StoreArgument {
    /// The store's URL.
    pub(crate) fn url(&self) -> Result<StoreUrl, Failed> {
        if let Some(url) = &self.store {
            return Ok(url.clone());
        }
        let directories = directories::ProjectDirs::from("", "", "longhaul");
        let nowhere = "there is no data directory for this user; say where tasks are kept with --store";
        let directories = directories.ok_or_else(|| Failed::Usage(nowhere.into()))?;
        Ok(StoreUrl::Sqlite(directories.data_dir().join("tasks.db")))
    }

    /// The file of a store that an operator can look into.
    pub(crate) fn file(&self) -> Result<PathBuf, Failed> {
        match self.url()? {
            StoreUrl::Sqlite(path) => Ok(path),
            StoreUrl::Memory => {
                Err(Failed::Usage("a store in memory is gone with its process; there is nothing here".into()))
            }
        }
    }
}
