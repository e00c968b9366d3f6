//! Reading a store while a server uses it.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use longhaul_task::TaskKey;

use crate::{ListQuery, OpenError, Snapshot, StoreError, TaskHistory, TaskPage};

/// Tasks per read of a check.
const CHECK_PAGE: usize = 1_000;

/// A store that was opened to read or copy it, for example by an operator while a server uses it. It reads what is
/// committed, and neither locks nor changes anything.
#[async_trait]
pub trait ReadOnlyStore: Send + Sync + fmt::Debug + 'static {
    /// Like [`Store::read`](crate::Store::read).
    async fn read(&self, key: &TaskKey) -> Result<Snapshot, StoreError>;

    /// Like [`Store::list`](crate::Store::list).
    async fn list(&self, of: &ListQuery) -> Result<TaskPage, StoreError>;

    /// Like [`Store::history`](crate::Store::history).
    async fn history(&self, key: &TaskKey) -> Result<TaskHistory, StoreError>;

    /// Reads everything that is committed, and reports what is damaged: rows that this program would not have written, and
    /// parts of tasks that are missing. A backend reports every damage that it can find; this implementation reads the
    /// tasks and fails at the first that cannot be read.
    async fn check(&self) -> Result<StoreReport, StoreError> {
        let mut of = ListQuery { owner: None, after: None, limit: CHECK_PAGE };
        let mut tasks = 0;
        loop {
            let page = self.list(&of).await?;
            tasks += page.tasks.len() as u64;
            of.after = page.tasks.last().map(|last| last.task.key.clone());
            if !page.has_more {
                return Ok(StoreReport::new(tasks, Vec::new()));
            }
        }
    }

    /// Copies everything that is committed when the copy begins into a new file. That file appears under its name when
    /// it is complete. A backend that cannot do this returns [`BackupError::Unsupported`].
    async fn backup(&self, to: &Path) -> Result<Backup, BackupError> {
        let _ = to;
        Err(BackupError::Unsupported)
    }
}

/// The result of [`ReadOnlyStore::check`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreReport {
    /// The number of tasks that were found, damaged or not.
    pub tasks: u64,
    /// Empty if the store is sound.
    pub damage: Vec<Damage>,
}

impl StoreReport {
    /// A report on a store in which so many tasks were found.
    pub fn new(tasks: u64, damage: Vec<Damage>) -> Self {
        Self { tasks, damage }
    }

    /// The tasks that are damaged or lost.
    pub fn damaged_tasks(&self) -> BTreeSet<&TaskKey> {
        self.damage.iter().filter_map(|damage| damage.task.as_ref()).collect()
    }
}

/// One thing that is wrong in a store.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Damage {
    /// `None` if it is not known which tasks it affects.
    pub task: Option<TaskKey>,
    /// What is wrong, in words.
    pub problem: String,
}

impl Damage {
    /// A problem of this task, or of the store as a whole.
    pub fn new(task: Option<TaskKey>, problem: String) -> Self {
        Self { task, problem }
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
