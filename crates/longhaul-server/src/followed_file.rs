//! A file that is read again when it changes.

use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;

/// How long a changed file must be unchanged before it is read: an editor may have truncated it and not written it yet.
const UNTOUCHED: Duration = Duration::from_millis(50);

/// The coarsest resolution of a file system's timestamps: a second change within this time can leave the timestamp as it
/// was.
const TIMESTAMP_RESOLUTION: Duration = Duration::from_secs(2);

/// A regular file that is checked for changes without being read. The functions block: call them on a thread for blocking work.
#[derive(Debug)]
pub struct FollowedFile {
    path: PathBuf,
    bytes_max: u64,
    last_read: Mutex<LastRead>,
}

/// The state of the file when it was last read.
#[derive(Debug)]
struct LastRead {
    stamp: Option<Stamp>,
    /// Whether a later change is certain to change the stamp.
    is_reliable: bool,
}

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FollowedFileError {
    /// It cannot be read.
    #[error("{0}")]
    Read(#[from] io::Error),
    /// It cannot be reread, for example a pipe.
    #[error("it is not a regular file")]
    NotAFile,
    /// It is too large.
    #[error("it has more than {0} bytes")]
    TooLarge(u64),
    /// It is being written.
    #[error("it changes while it is read")]
    InMotion,
}

/// The result of a check for changes.
#[derive(Debug)]
pub enum FileCheck {
    /// It is as it was, or is being written.
    Unchanged,
    /// Its content, which may be the same as before.
    Read(Vec<u8>),
    /// It cannot be read now.
    Failed(FollowedFileError),
}

impl FollowedFile {
    /// Reads a file for the first time.
    pub fn open(path: impl Into<PathBuf>, bytes_max: u64) -> Result<(Self, Vec<u8>), FollowedFileError> {
        let path = path.into();
        let (bytes, stamp) = read(&path, bytes_max)?;
        let last_read = Mutex::new(LastRead { stamp: Some(stamp), is_reliable: stamp.is_old() });
        Ok((Self { path, bytes_max, last_read }, bytes))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the file if it has changed.
    pub fn check(&self) -> FileCheck {
        let mut last = self.last_read.lock();
        let before = stamp(&self.path).ok();
        if last.is_reliable && before.is_some() && before == last.stamp {
            return FileCheck::Unchanged;
        }
        std::thread::sleep(UNTOUCHED);
        match read(&self.path, self.bytes_max) {
            Ok((bytes, now)) if before == Some(now) => {
                *last = LastRead { stamp: Some(now), is_reliable: now.is_old() };
                FileCheck::Read(bytes)
            }
            // It is being written: the next check reads it.
            Ok(_) | Err(FollowedFileError::InMotion) => FileCheck::Unchanged,
            Err(error) => {
                last.stamp = None;
                FileCheck::Failed(error)
            }
        }
    }
}

/// Tells whether a file has changed, without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: SystemTime,
    /// The change time (ctime). Unlike the modification time, it cannot be set back.
    changed: (i64, i64),
}

impl Stamp {
    fn of(file: &Metadata) -> Result<Self, FollowedFileError> {
        if !file.is_file() {
            return Err(FollowedFileError::NotAFile);
        }
        Ok(Self {
            device: file.dev(),
            inode: file.ino(),
            bytes: file.len(),
            modified: file.modified()?,
            changed: (file.ctime(), file.ctime_nsec()),
        })
    }

    /// Whether the last change is so long ago that a further one changes the timestamp.
    fn is_old(&self) -> bool {
        self.modified.elapsed().is_ok_and(|age| age > TIMESTAMP_RESOLUTION)
    }
}

fn stamp(path: &Path) -> Result<Stamp, FollowedFileError> {
    Stamp::of(&std::fs::metadata(path)?)
}

fn read(path: &Path, bytes_max: u64) -> Result<(Vec<u8>, Stamp), FollowedFileError> {
    // Checked first: opening a pipe would block.
    stamp(path)?;
    let file = File::open(path)?;
    let before = Stamp::of(&file.metadata()?)?;
    let mut bytes = Vec::new();
    (&file).take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(FollowedFileError::TooLarge(bytes_max));
    }
    let after = Stamp::of(&file.metadata()?)?;
    if before == after { Ok((bytes, after)) } else { Err(FollowedFileError::InMotion) }
}
