//! The store that a command works on.

use longhaul::StoreUrl;

use crate::exit::CommandError;

/// `--store` of a server.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct StoreArgument {
    /// Where tasks are kept: `sqlite:PATH` or `memory:` [default: SQLite in your data directory]
    #[arg(long, value_name = "URL", env = "LONGHAUL_STORE")]
    store: Option<StoreUrl>,
}

impl StoreArgument {
    /// The URL on the command line, else the one in the config file, else the default. Only the directory of the default is
    /// created if it does not exist: another path may be a typing error.
    pub(crate) async fn url(&self, configured: Option<&StoreUrl>) -> Result<StoreUrl, CommandError> {
        if let Some(url) = self.store.as_ref().or(configured) {
            return Ok(url.clone());
        }
        let url = default_url()?;
        url.create_directory().await?;
        Ok(url)
    }
}

/// `--store` of an operator's command. A `memory:` store exists only in its server, so these commands cannot open it.
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
