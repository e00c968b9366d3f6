//! What SQLite says, in our words.

use std::io;
use std::path::{Path, PathBuf};

use longhaul_store::embedded::DiskError;
use rusqlite::ffi;

/// Why a file could not be opened as a store. Nothing in it was changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it.
    #[error(
        "the store {} is in use by {}: it holds {}",
        path.display(),
        pid.map_or("another process".to_owned(), |pid| format!("process {pid}")),
        lock.display()
    )]
    Locked {
        /// The store.
        path: PathBuf,
        /// The lock file.
        lock: PathBuf,
        /// The process, if it has written down who it is.
        pid: Option<u32>,
    },
    /// A newer Longhaul wrote it.
    #[error(
        "the store {} has version {found}; this program knows versions up to {known}, so a newer one must open it",
        path.display()
    )]
    Newer {
        /// The store.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The newest version that this program knows.
        known: u32,
    },
    /// It is no SQLite file.
    #[error("{} is not a database", path.display())]
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// It is a directory.
    #[error("{} is a directory; a store is a file, such as {}", path.display(), path.join("tasks.db").display())]
    Directory {
        /// The directory.
        path: PathBuf,
    },
    /// There is no directory to keep it in.
    #[error("there is no directory {} for the store {}", directory.display(), path.display())]
    NoDirectory {
        /// The store.
        path: PathBuf,
        /// The directory.
        directory: PathBuf,
    },
    /// It is a database of another program.
    #[error("the database {} belongs to another program", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// What is in it cannot be true. Restore a backup.
    #[error("the store {} is damaged: {cause}", path.display())]
    Damaged {
        /// The store.
        path: PathBuf,
        /// What was found.
        cause: String,
    },
    /// This user may not open it.
    #[error("the store {} may not be opened by this user: {cause}", path.display())]
    Permission {
        /// The store.
        path: PathBuf,
        /// What the system said.
        cause: String,
    },
    /// Nothing can be written where it is.
    #[error("the store {} is on a file system that is read-only", path.display())]
    ReadOnly {
        /// The store.
        path: PathBuf,
    },
    /// There is no room to open it.
    #[error("there is no room left to open the store {}: {cause}", path.display())]
    Full {
        /// The store.
        path: PathBuf,
        /// What the system said.
        cause: String,
    },
    /// There is nothing to look at.
    #[error("there is no store {}", path.display())]
    Missing {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// The file is there, with nothing in it.
    #[error("the file {} is empty; it becomes a store when a server opens it", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// Something else.
    #[error("the store {} could not be opened: {cause}", path.display())]
    Failed {
        /// The store.
        path: PathBuf,
        /// What the system said.
        cause: String,
    },
}

impl OpenError {
    /// A word that scripts can rely on.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Locked { .. } => "STORE_LOCKED",
            Self::Newer { .. } => "STORE_NEWER",
            Self::NotADatabase { .. } => "STORE_NOT_A_DATABASE",
            Self::Directory { .. } => "STORE_IS_A_DIRECTORY",
            Self::NoDirectory { .. } => "STORE_NO_DIRECTORY",
            Self::Foreign { .. } => "STORE_FOREIGN",
            Self::Damaged { .. } => "STORE_DAMAGED",
            Self::Permission { .. } => "STORE_PERMISSION",
            Self::ReadOnly { .. } => "STORE_READ_ONLY",
            Self::Full { .. } => "STORE_FULL",
            Self::Missing { .. } => "STORE_MISSING",
            Self::Empty { .. } => "STORE_EMPTY",
            Self::Failed { .. } => "STORE_OPEN_FAILED",
        }
    }

    /// What the file system said about that file.
    pub(crate) fn io(path: &Path, error: &io::Error) -> Self {
        let (path, cause) = (path.to_owned(), error.to_string());
        match error.kind() {
            io::ErrorKind::PermissionDenied => Self::Permission { path, cause },
            io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly { path },
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full { path, cause },
            io::ErrorKind::IsADirectory => Self::Directory { path },
            _ => Self::Failed { path, cause },
        }
    }

    /// What SQLite said about that file.
    pub(crate) fn sqlite(path: &Path, error: &rusqlite::Error) -> Self {
        let (path, cause) = (path.to_owned(), error.to_string());
        match primary_code(error) {
            Some(ffi::SQLITE_NOTADB) => Self::NotADatabase { path },
            Some(ffi::SQLITE_CORRUPT) => Self::Damaged { path, cause },
            Some(ffi::SQLITE_PERM | ffi::SQLITE_READONLY | ffi::SQLITE_AUTH) => Self::Permission { path, cause },
            Some(ffi::SQLITE_FULL) => Self::Full { path, cause },
            _ => Self::Failed { path, cause },
        }
    }
}

/// What SQLite said during a read or a write, by what it means for what comes next.
// By value: that is how `map_err` hands it over.
#[allow(clippy::needless_pass_by_value)]
pub(crate) fn disk_error(error: rusqlite::Error) -> DiskError {
    let cause = error.to_string();
    if matches!(
        error,
        rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
    ) {
        // A row that this program did not write, or not so.
        return DiskError::Untrusted(cause);
    }
    match (primary_code(&error), error.sqlite_extended_error_code()) {
        // The memory that readers and the writer share is a file on the same disk; it fails to grow for want of room.
        (Some(ffi::SQLITE_FULL), _) | (_, Some(ffi::SQLITE_IOERR_SHMSIZE)) => DiskError::Full(cause),
        (Some(ffi::SQLITE_CORRUPT | ffi::SQLITE_NOTADB), _)
        | (_, Some(ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC)) => DiskError::Untrusted(cause),
        _ => DiskError::Failed(cause),
    }
}

fn primary_code(error: &rusqlite::Error) -> Option<i32> {
    error.sqlite_extended_error_code().map(|code| code & 0xff)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(extended_code: i32) -> rusqlite::Error {
        rusqlite::Error::SqliteFailure(ffi::Error::new(extended_code), None)
    }

    #[test]
    fn only_want_of_room_is_full_and_only_broken_promises_stop_the_store() {
        assert!(matches!(disk_error(failure(ffi::SQLITE_FULL)), DiskError::Full(_)));
        assert!(matches!(disk_error(failure(ffi::SQLITE_IOERR_FSYNC)), DiskError::Untrusted(_)));
        assert!(matches!(disk_error(failure(ffi::SQLITE_IOERR_DIR_FSYNC)), DiskError::Untrusted(_)));
        assert!(matches!(disk_error(failure(ffi::SQLITE_CORRUPT_INDEX)), DiskError::Untrusted(_)));
        assert!(matches!(disk_error(failure(ffi::SQLITE_IOERR_WRITE)), DiskError::Failed(_)));
        assert!(matches!(disk_error(failure(ffi::SQLITE_BUSY)), DiskError::Failed(_)));
    }
}
