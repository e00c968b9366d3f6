//! Where tasks are kept, as a URL.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use longhaul_store::embedded::EmbeddedLimits;
use longhaul_store::{OpenError, ReadOnlyStore, Store, SystemClock, memory};
#[cfg(feature = "sqlite")]
use longhaul_store_sqlite as sqlite;

/// Where tasks are kept: `sqlite:PATH` or `memory:`.
///
/// ```
/// use longhaul::StoreUrl;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = "memory:".parse::<StoreUrl>()?.open().await?;
///
/// let nowhere = "sqlite:no/such/directory/tasks.db".parse::<StoreUrl>()?;
/// assert_eq!(nowhere.open().await.unwrap_err().code(), "STORE_NO_DIRECTORY");
/// assert!("tape:reel7".parse::<StoreUrl>().is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreUrl {
    /// A SQLite file.
    Sqlite(PathBuf),
    /// The memory of this process: the tasks end with it.
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
    /// Opens the store for a server. A file that does not exist is created, in a directory that must exist.
    pub async fn open(&self) -> Result<Arc<dyn Store>, OpenError> {
        self.open_with(EmbeddedLimits::default()).await
    }

    /// The same with other limits.
    pub async fn open_with(&self, limits: EmbeddedLimits) -> Result<Arc<dyn Store>, OpenError> {
        self.blocking(move |url| match url {
            Self::Memory => match memory::open_with(SystemClock, &limits) {
                Ok(store) => Ok(Arc::new(store) as _),
                Err(error) => Err(url.failed(format!("cannot start a thread: {error}"))),
            },
            #[cfg(feature = "sqlite")]
            Self::Sqlite(path) => {
                Ok(Arc::new(sqlite::open(path, &sqlite::SqliteOptions::default().limits(limits), SystemClock)?) as _)
            }
            #[cfg(not(feature = "sqlite"))]
            Self::Sqlite(_) => Err(url.not_built_in()),
        })
        .await
    }

    /// Opens the store to look at it or to copy it, while a server uses it or not. Nothing is locked or changed.
    pub async fn open_read_only(&self) -> Result<Arc<dyn ReadOnlyStore>, OpenError> {
        self.blocking(|url| match url {
            Self::Memory => Err(OpenError::Unsupported {
                store: url.to_string(),
                cause: "a store in memory ends with its process, and only that process can look at it",
            }),
            #[cfg(feature = "sqlite")]
            Self::Sqlite(path) => Ok(Arc::new(sqlite::open_read_only(path)?) as _),
            #[cfg(not(feature = "sqlite"))]
            Self::Sqlite(_) => Err(url.not_built_in()),
        })
        .await
    }

    /// Creates the directory of the store's file, private to this user, with everything above it. [`open`](Self::open)
    /// does not: after a typing error in a path there would be a new, empty store.
    pub async fn create_directory(&self) -> Result<(), OpenError> {
        self.blocking(|url| match url {
            Self::Memory => Ok(()),
            #[cfg(feature = "sqlite")]
            Self::Sqlite(path) => sqlite::create_directory(path),
            #[cfg(not(feature = "sqlite"))]
            Self::Sqlite(_) => Err(url.not_built_in()),
        })
        .await
    }

    /// The store's file, if it is one.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Sqlite(path) => Some(path),
            Self::Memory => None,
        }
    }

    /// Runs what waits for the disk on a thread for such work.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, OpenError> + Send + 'static,
    ) -> Result<T, OpenError> {
        let url = self.clone();
        let done = tokio::task::spawn_blocking(move || work(&url)).await;
        done.unwrap_or_else(|error| Err(self.failed(error.to_string())))
    }

    fn failed(&self, cause: String) -> OpenError {
        OpenError::Failed { store: self.to_string(), cause }
    }

    #[cfg(not(feature = "sqlite"))]
    fn not_built_in(&self) -> OpenError {
        OpenError::NotBuiltIn { store: self.to_string(), backend: "SQLite" }
    }
}
