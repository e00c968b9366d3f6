//! The files of an open store by their identity, so that the store notices when a name leads to another file.
//!
//! A process that has a file open goes on writing to it when the file is removed, moved or replaced. Everything it
//! acknowledges from then on is lost at its end: the next process opens the files by their names.

use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use longhaul_store::embedded::DiskError;

use crate::error::display_path;
use crate::file::beside;

/// Where the header of a file says whether the file is in WAL mode, and what it says then.
const MODE_AT: u64 = 18;
const WAL_MODE: [u8; 2] = [2, 2];

/// Names a file for as long as it is open in some process; later the system may use the number for another file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    #[cfg(unix)]
    pub(crate) fn of(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self { device: metadata.dev(), inode: metadata.ino() }
    }

    /// This system does not let a program remove or rename a file that is open.
    #[cfg(not(unix))]
    pub(crate) fn of(_metadata: &Metadata) -> Self {
        Self { device: 0, inode: 0 }
    }

    /// The file that has this name; `None` if there is none.
    pub(crate) fn at(path: &Path) -> io::Result<Option<Self>> {
        #[cfg(target_os = "linux")]
        if let Some(id) = Self::without_times(path) {
            return Ok(Some(id));
        }
        match std::fs::metadata(path) {
            Ok(metadata) => Ok(Some(Self::of(&metadata))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[cfg(target_os = "linux")]
impl FileId {
    /// Looks at a file without reading its times. Since Linux 6.13, reading them makes the kernel note the next write with a more
    /// exact time, and the `fdatasync` after that write takes a third longer. The store looks at its log after each commit.
    fn without_times(path: &Path) -> Option<Self> {
        use rustix::fs::{AtFlags, CWD, StatxFlags, makedev, statx};

        let found = statx(CWD, path, AtFlags::empty(), StatxFlags::INO).ok()?;
        Some(Self { device: makedev(found.stx_dev_major, found.stx_dev_minor), inode: found.stx_ino })
    }
}

/// The files of an open store.
#[derive(Debug)]
pub(crate) struct OpenFiles {
    /// Open until the store is closed. Closing any descriptor of a file releases the locks that SQLite has on it.
    database: File,
    path: PathBuf,
    files: Vec<(PathBuf, FileId)>,
}

impl OpenFiles {
    /// The files of a store that SQLite has open in WAL mode, with those of its locks.
    pub(crate) fn of(path: &Path, database: File, lock: (PathBuf, FileId)) -> io::Result<Self> {
        let mut files = vec![(path.to_owned(), FileId::of(&database.metadata()?)), lock];
        for ending in ["-wal", "-shm"] {
            let path = beside(path, ending);
            let id =
                FileId::at(&path)?.ok_or_else(|| io::Error::other(format!("{} is missing", display_path(&path))))?;
            files.push((path, id));
        }
        Ok(Self { database, path: path.to_owned(), files })
    }

    /// Checks that every name still leads to the file that is open, and that no other content was copied into the
    /// database.
    pub(crate) fn verify(&self) -> Result<(), DiskError> {
        for (path, id) in &self.files {
            let what = match FileId::at(path) {
                Ok(Some(found)) if found == *id => continue,
                Ok(Some(_)) => "was replaced by another file".to_owned(),
                Ok(None) => "was removed or moved".to_owned(),
                Err(error) => format!("cannot be looked at: {error}"),
            };
            return Err(lost(path, &what));
        }
        match self.is_in_wal_mode() {
            Ok(true) => Ok(()),
            Ok(false) => Err(lost(&self.path, "was overwritten by another program")),
            Err(error) => Err(lost(&self.path, &format!("cannot be read: {error}"))),
        }
    }

    /// A store leaves WAL mode when it is closed, and a backup is not in WAL mode. So a database that is not, or that is
    /// empty, was overwritten in place.
    #[cfg(unix)]
    fn is_in_wal_mode(&self) -> io::Result<bool> {
        let mut mode = [0; 2];
        let bytes = std::os::unix::fs::FileExt::read_at(&self.database, &mut mode, MODE_AT)?;
        Ok(bytes == mode.len() && mode == WAL_MODE)
    }

    #[cfg(not(unix))]
    fn is_in_wal_mode(&self) -> io::Result<bool> {
        Ok(true)
    }
}

fn lost(path: &Path, what: &str) -> DiskError {
    let path = display_path(path);
    DiskError::Untrusted(format!("{path} {what} while the store was open; what is written now would be lost"))
}
