//! One process at a time: a lock file beside the database.
//!
//! SQLite itself would let two processes in, and each would believe its cache. The lock also proves that every attempt
//! of an older process is dead, which is what recovery stands on.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use crate::OpenError;

/// Holds the lock. The file stays when it is let go: deleting it would let two processes lock two files of one name.
#[derive(Debug)]
pub(crate) struct Lock {
    _held: File,
}

impl Lock {
    /// Takes the lock of that store, or says who has it.
    pub(crate) fn take(path: &Path) -> Result<Self, OpenError> {
        let lock = lock_path(path);
        let io = |error: &std::io::Error| OpenError::io(&lock, error);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = crate::file::private(&mut options).open(&lock).map_err(|error| io(&error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let pid = holder(&mut file);
                return Err(OpenError::Locked { path: path.to_owned(), lock, pid });
            }
            Err(TryLockError::Error(error)) => return Err(io(&error)),
        }
        // Only for people to read; the lock itself is the system's.
        file.set_len(0).map_err(|error| io(&error))?;
        writeln!(file, "{}", std::process::id()).map_err(|error| io(&error))?;
        Ok(Self { _held: file })
    }
}

/// `NAME.lock` beside `NAME`.
fn lock_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

/// The process that has the lock, if it has written down who it is.
fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.take(32).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
