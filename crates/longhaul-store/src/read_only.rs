//! Reading a store while a server uses it.

use std::fmt;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use longhaul_task::TaskKey;

use crate::{ListQuery, OpenError, Snapshot, StoreError, TaskPage};

/// A store that was opened to read or copy it, for example by an operator while a server uses it. It reads what is
/// committed, and neither locks nor changes anything.
#[async_trait]
pub trait ReadOnlyStore: Send + Sync + fmt::Debug + 'static {
    /// Like [`Store::read`](crate::Store::read).
    async fn read(&self, key: &TaskKey) -> Result<Snapshot, StoreError>;

    /// Like [`Store::list`](crate::Store::list).
    async fn list(&self, of: &ListQuery) -> Result<TaskPage, StoreError>;

    /// Copies everything that is committed when the copy begins into a new file. That file appears under its name when
    /// it is complete. A backend that cannot do this returns [`BackupError::Unsupported`].
    async fn backup(&self, to: &Path) -> Result<Backup, BackupError> {
        let _ = to;
        Err(BackupError::Unsupported)
    }
}

/// A complete backup.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs)]
pub struct Backup {
    pub path: PathBuf,
    pub bytes: u64,
    /// The number of tasks in the backup.
    pub tasks: u64,
}

impl Backup {
    /// A backup at this path.
    pub fn new(path: PathBuf, bytes: u64, tasks: u64) -> Self {
        Self { path, bytes, tasks }
    }
}

/// Why a backup failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// The store cannot be read.
    #[error("the store cannot be backed up: {0}")]
    From(#[source] OpenError),
    /// The copy cannot be written, or it does not read back correctly.
    #[error("the backup cannot be written: {0}")]
    To(#[source] OpenError),
    /// A file with this name exists. Choose another name.
    #[error("the file {} exists already; choose another name for the backup", .0.display())]
    Exists(PathBuf),
    /// The file into which a backup of this name is written exists already.
    #[error(
        "another backup to this name is under way, or one was interrupted; if none is under way, remove {}", .0.display()
    )]
    UnderWay(PathBuf),
    /// The backend cannot make backups; use the tools of its database.
    #[error("this store cannot be backed up into a file; use the tools of its database")]
    Unsupported,
}

impl BackupError {
    /// A stable code for scripts.
    pub fn code(&self) -> &'static str {
        match self {
            Self::From(error) | Self::To(error) => error.code(),
            Self::Exists(_) => "BACKUP_EXISTS",
            Self::UnderWay(_) => "BACKUP_UNDER_WAY",
            Self::Unsupported => "BACKUP_UNSUPPORTED",
        }
    }
}
