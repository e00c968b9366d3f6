//! Errors of SQLite and of the file system as errors of the store.

use std::io;
use std::path::Path;

use longhaul_store::OpenError;
use longhaul_store::embedded::DiskError;
use rusqlite::ffi;

/// The place of a store, as error messages name it.
pub(crate) fn display_path(path: &Path) -> String {
    path.display().to_string()
}

/// What the file system said when that file was opened.
pub(crate) fn io_error(path: &Path, error: &io::Error) -> OpenError {
    let (store, cause) = (display_path(path), error.to_string());
    match error.kind() {
        io::ErrorKind::PermissionDenied => OpenError::Permission { store, cause },
        io::ErrorKind::ReadOnlyFilesystem => OpenError::ReadOnly { store },
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => OpenError::Full { store, cause },
        io::ErrorKind::IsADirectory => is_a_directory(path),
        _ => OpenError::Failed { store, cause },
    }
}

/// What SQLite said when that file was opened.
pub(crate) fn sqlite_error(path: &Path, error: &rusqlite::Error) -> OpenError {
    let (store, cause) = (display_path(path), cause(error));
    match primary_code(error) {
        Some(ffi::SQLITE_NOTADB) => OpenError::NotADatabase { store },
        Some(ffi::SQLITE_CORRUPT) => OpenError::Damaged { store, cause },
        Some(ffi::SQLITE_PERM | ffi::SQLITE_READONLY | ffi::SQLITE_AUTH) => OpenError::Permission { store, cause },
        Some(ffi::SQLITE_FULL) => OpenError::Full { store, cause },
        _ => OpenError::Failed { store, cause },
    }
}

pub(crate) fn is_a_directory(path: &Path) -> OpenError {
    OpenError::Directory { store: display_path(path), suggestion: display_path(&path.join("tasks.db")) }
}

/// What SQLite said during a read or a write, by what it means for the store.
// By value, because `map_err` passes it so.
#[allow(clippy::needless_pass_by_value)]
pub(crate) fn disk_error(error: rusqlite::Error) -> DiskError {
    let cause = cause(&error);
    if matches!(
        error,
        rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
    ) {
        return DiskError::Unreadable(cause);
    }
    match (primary_code(&error), error.sqlite_extended_error_code()) {
        // The shared memory of readers and writer is a file on the same disk, which cannot grow when the disk is full.
        (Some(ffi::SQLITE_FULL), _) | (_, Some(ffi::SQLITE_IOERR_SHMSIZE)) => DiskError::Full(cause),
        (Some(ffi::SQLITE_CORRUPT | ffi::SQLITE_NOTADB), _)
        | (_, Some(ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC)) => DiskError::Untrusted(cause),
        _ => DiskError::Failed(cause),
    }
}

/// What SQLite said, without the statement that it said it about.
fn cause(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        other => other.to_string(),
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
