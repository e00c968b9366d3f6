//! The store that a command works on.

use longhaul::StoreUrl;

use crate::exit::CommandError;

/// The option `--store` of a server.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct StoreArgument {
    /// Where tasks are kept: `sqlite:PATH` or `memory:` [default: SQLite in your data directory]
    #[arg(long, value_name = "URL", env = "LONGHAUL_STORE")]
    store: Option<StoreUrl>,
}

impl StoreArgument {
    /// The URL from the command line, else `configured` (from the config file), else the default. Only the default directory
    /// is created if it does not exist: the path of another URL may have a typing error.
    pub(crate) async fn url(&self, configured: Option<&StoreUrl>) -> Result<StoreUrl, CommandError> {
        if let Some(url) = self.store.as_ref().or(configured) {
            return Ok(url.clone());
        }
        let url = default_url()?;
        url.create_directory().await?;
        Ok(url)
    }
}

/// The option `--store` of an operator's command. The help does not offer `memory:`, which exists only inside of a server.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct OperatorStoreArgument {
    /// Where tasks are kept: `sqlite:PATH` [default: SQLite in your data directory]
    #[arg(long, value_name = "URL", env = "LONGHAUL_STORE")]
    store: Option<StoreUrl>,
}

impl OperatorStoreArgument {
    pub(crate) fn url(&self) -> Result<StoreUrl, CommandError> {
        self.store.clone().map_or_else(default_url, Ok)
    }
}

fn default_url() -> Result<StoreUrl, CommandError> {
    let directories = directories::ProjectDirs::from("", "", "longhaul");
    let nowhere = "this user has no data directory; choose a place for the store with --store";
    let directories = directories.ok_or_else(|| CommandError::Usage(nowhere.into()))?;
    Ok(StoreUrl::Sqlite(directories.data_dir().join("tasks.db")))
}
