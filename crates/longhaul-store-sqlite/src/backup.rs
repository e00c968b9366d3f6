//! Copying a store, also while a server writes to it.

use std::path::{Path, PathBuf};

use longhaul_store::{Backup, BackupError, OpenError};
use rusqlite::backup::{self, StepResult};
use rusqlite::{Connection, OpenFlags};

use crate::error::{display_path, io_error, sqlite_error};
use crate::migration::{self, MIGRATIONS};
use crate::open::connect_read_only;
use crate::{check, file};

/// Copies a store to a new file. The copy holds what was committed when the copying began, and nothing later, even if a
/// server writes to the store meanwhile. The file `to` appears when the copy is complete, checked and synced.
///
/// This blocks. [`ReadOnlyStore::backup`](longhaul_store::ReadOnlyStore::backup) does not.
pub fn backup(from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<Backup, BackupError> {
    let (from, to) = (from.as_ref(), to.as_ref());
    if to.exists() {
        return Err(BackupError::Exists(to.to_owned()));
    }
    let partial = partial_path(to);
    let is_new = file::create(&partial).map_err(|error| BackupError::To(io_error(to, &error)))?;
    if !is_new {
        return Err(BackupError::UnderWay(partial));
    }
    // Another backup may have ended between the first check and the creation. From here on none can: the partial file
    // is this backup's alone.
    let free = if to.exists() { Err(BackupError::Exists(to.to_owned())) } else { Ok(()) };
    let copied = free.and_then(|()| copy(from, &partial));
    let copied = copied.and_then(|tasks| finish(&partial, to, tasks).map_err(BackupError::To));
    if copied.is_err() {
        // The caller gets the error of the copy; an error of this removal is ignored.
        let _ = std::fs::remove_file(&partial);
    }
    copied
}

/// Copies the store to the empty file `partial` and checks the copy. Returns the number of tasks in it.
fn copy(from: &Path, partial: &Path) -> Result<u64, BackupError> {
    let (source, _) = connect_read_only(from).map_err(BackupError::From)?;
    let write_failed = |error: rusqlite::Error| BackupError::To(sqlite_error(partial, &error));
    let mut target = Connection::open_with_flags(partial, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(write_failed)?;
    // One step is one read transaction, so the copy shows the store at one moment.
    let all_at_once = -1;
    let step = backup::Backup::new(&source, &mut target).and_then(|backup| backup.step(all_at_once));
    if step.map_err(write_failed)? != StepResult::Done {
        let cause = "another program kept the store locked".to_owned();
        return Err(BackupError::From(OpenError::Failed { store: display_path(from), cause }));
    }
    // Outside of WAL mode the copy is a single file.
    target.pragma_update(None, "journal_mode", "delete").map_err(write_failed)?;
    check::read_through(&target, partial).map_err(BackupError::To)?;
    migration::version(&target, partial, MIGRATIONS.len()).map_err(BackupError::To)?;
    let tasks: i64 = target.query_row("SELECT count(*) FROM task", [], |row| row.get(0)).map_err(write_failed)?;
    Ok(tasks.unsigned_abs())
}

/// Syncs a complete copy and renames it to `to`.
fn finish(partial: &Path, to: &Path, tasks: u64) -> Result<Backup, OpenError> {
    let io = |error: std::io::Error| io_error(to, &error);
    let file = std::fs::File::open(partial).map_err(io)?;
    file.sync_all().map_err(io)?;
    let bytes = file.metadata().map_err(io)?.len();
    std::fs::rename(partial, to).map_err(io)?;
    file::sync_name(to).map_err(io)?;
    Ok(Backup::new(to.to_owned(), bytes, tasks))
}

/// `NAME.partial` beside `NAME`.
fn partial_path(to: &Path) -> PathBuf {
    let mut name = to.as_os_str().to_owned();
    name.push(".partial");
    name.into()
}
