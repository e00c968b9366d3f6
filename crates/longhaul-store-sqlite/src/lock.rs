//! One process at a time: a lock file beside the database, and a lock on the database itself.
//!
//! SQLite would allow two processes, and each would trust its own cache. The lock also proves that every attempt of an
//! earlier process is dead, which recovery depends on.
//!
//! The lock file is removed when the lock is released. This is safe: only the holder of the lock removes the file, and a
//! lock counts only if its file still has its name. A process that has locked a removed file tries again with the
//! new one.
//!
//! The lock on the database does not depend on a name: it holds when the lock file was removed. It is a lock of the whole
//! file (`flock`), which Linux keeps apart from the locks of records that SQLite uses. Other systems do not: there SQLite
//! would wait for it, so there is only the lock file, and a server that loses it ends within a second.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use longhaul_store::OpenError;

use crate::error::{display_path, io_error};
use crate::identity::FileId;

/// How often locking may be tried again because the file was removed meanwhile. Each time, another process has opened
/// and closed the store.
const TRIES_MAX: usize = 1_000;

/// The lock of a store, held until it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    path: PathBuf,
    held: File,
}

impl Lock {
    /// Takes the lock of that store. The error names the process that holds it.
    pub(crate) fn take(store: &Path) -> Result<Self, OpenError> {
        let path = lock_path(store);
        let io = |error: io::Error| io_error(store, &error);
        for _ in 0..TRIES_MAX {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false);
            let mut file = crate::file::private(&mut options).open(&path).map_err(io)?;
            match file.try_lock() {
                Ok(()) if has_its_name(&file, &path).map_err(io)? => {}
                Ok(()) => continue,
                Err(TryLockError::WouldBlock) => {
                    let process = holder(&mut file).map(|pid| format!("process {pid}"));
                    return Err(in_use(store, &path, process.as_deref()));
                }
                Err(TryLockError::Error(error)) => return Err(io(error)),
            }
            // For people to read; the lock itself is the system's.
            file.set_len(0).map_err(io)?;
            writeln!(file, "{}", std::process::id()).map_err(io)?;
            return Ok(Self { path, held: file });
        }
        Err(in_use(store, &path, None))
    }

    /// The lock file.
    pub(crate) fn file(&self) -> io::Result<(PathBuf, FileId)> {
        Ok((self.path.clone(), FileId::of(&self.held.metadata()?)))
    }
}

/// Opens the database and locks it until the file is dropped.
pub(crate) fn lock_database(store: &Path) -> Result<File, OpenError> {
    let io = |error: io::Error| io_error(store, &error);
    // For writing: a file in a lower layer of an overlay gets its final identity when it is opened so.
    let database = OpenOptions::new().read(true).write(true).open(store).map_err(io)?;
    if cfg!(target_os = "linux") {
        match database.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(in_use(store, store, None)),
            Err(TryLockError::Error(error)) => return Err(io(error)),
        }
    }
    Ok(database)
}

impl Drop for Lock {
    fn drop(&mut self) {
        // It is still locked here. A file that cannot be removed does no harm: it is not locked. One that another process
        // has put in the place of this one is left alone.
        #[cfg(unix)]
        if has_its_name(&self.held, &self.path).unwrap_or(false) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Whether the open file still has this name.
fn has_its_name(file: &File, path: &Path) -> io::Result<bool> {
    Ok(FileId::at(path)? == Some(FileId::of(&file.metadata()?)))
}

fn in_use(store: &Path, lock: &Path, process: Option<&str>) -> OpenError {
    let holder = format!("{}, which holds {}", process.unwrap_or("another process"), display_path(lock));
    OpenError::InUse { store: display_path(store), holder }
}

/// `NAME.lock` beside `NAME`.
fn lock_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

/// The process that holds the lock, if it has written its number into the file yet.
fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.take(32).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(all(test, unix))]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn however_often_it_is_let_go_and_removed_only_one_has_it() {
        let directory = tempfile::tempdir().unwrap();
        let store = directory.path().join("tasks.db");
        let (holders, turns) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|threads| {
            for _ in 0..8 {
                threads.spawn(|| {
                    while turns.load(Ordering::SeqCst) < 2_000 {
                        let Ok(lock) = Lock::take(&store) else { continue };
                        assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0, "two have it");
                        turns.fetch_add(1, Ordering::SeqCst);
                        holders.fetch_sub(1, Ordering::SeqCst);
                        drop(lock);
                    }
                });
            }
        });
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
