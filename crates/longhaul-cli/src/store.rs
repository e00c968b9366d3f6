//! The store that a command works on.

use std::path::PathBuf;

use longhaul::StoreUrl;

use crate::exit::Failed;

/// `--store` of a server, and where it is when nobody says.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct StoreArgument {
    /// Where tasks are kept: `sqlite:PATH` or `memory:` [default: SQLite in your data directory]
    #[arg(long, value_name = "URL", env = "LONGHAUL_STORE")]
    store: Option<StoreUrl>,
}

impl StoreArgument {
    /// The store's URL. Only the default place is made if it is not there: anything else may be a typing error.
    pub(crate) fn url(&self) -> Result<StoreUrl, Failed> {
        if let Some(url) = &self.store {
            return Ok(url.clone());
        }
        let file = default_file()?;
        longhaul_store_sqlite::create_directory(&file)?;
        Ok(StoreUrl::Sqlite(file))
    }
}

/// `--store` of an operator's command: something that can be looked into.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct FileArgument {
    /// Where tasks are kept: `sqlite:PATH` [default: SQLite in your data directory]
    #[arg(long, value_name = "URL", env = "LONGHAUL_STORE")]
    store: Option<StoreUrl>,
}

impl FileArgument {
    /// The store's file.
    pub(crate) fn file(&self) -> Result<PathBuf, Failed> {
        match &self.store {
            Some(StoreUrl::Sqlite(path)) => Ok(path.clone()),
            Some(StoreUrl::Memory) => {
                Err(Failed::Usage("a store in memory is gone with its process; there is nothing here".into()))
            }
            None => default_file(),
        }
    }
}

fn default_file() -> Result<PathBuf, Failed> {
    let directories = directories::ProjectDirs::from("", "", "longhaul");
    let nowhere = "there is no data directory for this user; say where tasks are kept with --store";
    let directories = directories.ok_or_else(|| Failed::Usage(nowhere.into()))?;
    Ok(directories.data_dir().join("tasks.db"))
}
