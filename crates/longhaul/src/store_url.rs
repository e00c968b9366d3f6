//! Where tasks are kept, as a URL.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use longhaul_store::{Store, SystemClock, memory};

use crate::Error;

/// Where tasks are kept: `sqlite:PATH` or `memory:`.
///
/// ```
/// use longhaul::StoreUrl;
///
/// assert!("sqlite:tasks.db".parse::<StoreUrl>().is_ok());
/// assert!("memory:".parse::<StoreUrl>().is_ok());
/// assert!("tape:reel7".parse::<StoreUrl>().is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreUrl {
    /// A SQLite file.
    Sqlite(PathBuf),
    /// Nowhere: gone with the process.
    Memory,
}

impl FromStr for StoreUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("sqlite", path)) if !path.is_empty() => Ok(Self::Sqlite(path.trim_start_matches("//").into())),
            Some(("memory", "")) => Ok(Self::Memory),
            _ => Err(format!("{text:?} is not a store; it is `sqlite:PATH` or `memory:`")),
        }
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Memory => f.write_str("memory:"),
        }
    }
}

impl StoreUrl {
    /// Opens the store; a file that is not there is made, in a directory that is.
    pub fn open(&self) -> Result<Arc<dyn Store>, Error> {
        match self {
            Self::Memory => Ok(Arc::new(memory::open(SystemClock).map_err(Error::Thread)?)),
            #[cfg(feature = "sqlite")]
            Self::Sqlite(path) => {
                let options = longhaul_store_sqlite::Options::default();
                Ok(Arc::new(longhaul_store_sqlite::open(path, &options, SystemClock)?))
            }
            #[cfg(not(feature = "sqlite"))]
            Self::Sqlite(_) => Err(Error::NotBuiltIn("sqlite")),
        }
    }
}
