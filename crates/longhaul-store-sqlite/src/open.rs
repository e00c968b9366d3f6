//! Opening a store: the lock, the file, its schema and its integrity, in this order.

use std::path::Path;

use longhaul_store::embedded::{Embedded, EmbeddedLimits};
use longhaul_store::{Clock, OpenError};
use rusqlite::Connection;

use crate::disk::SqliteDisk;
use crate::error::{display_path, io_error, is_a_directory, sqlite_error};
use crate::identity::OpenFiles;
use crate::lock::{Lock, lock_database};
use crate::migration::{self, MIGRATIONS};
use crate::{SqliteReader, check, connection, file};

/// How to open a store.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct SqliteOptions {
    /// The limits of the store in this process: cache, queue, batches.
    pub limits: EmbeddedLimits,
    /// The largest size of the file in bytes. A creation beyond it is refused with `STORE_FULL`. `None`: as large as the
    /// disk allows.
    pub file_bytes_max: Option<u64>,
    /// Lets a test show that it notices a missing fsync.
    #[doc(hidden)]
    pub synchronous: Synchronous,
}

longhaul_store::setters!(SqliteOptions { limits: EmbeddedLimits, file_bytes_max: Option<u64> });

/// Whether a commit waits for the disk.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Synchronous {
    #[default]
    Full,
    /// A commit may be lost in a crash of the machine.
    Off,
}

impl Synchronous {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Off => "off",
        }
    }
}

/// Opens a store for this process alone, and creates it if there is none, in a directory that must exist. The file is
/// private to its user. A file that is refused stays as it was, and nothing is left beside it.
///
/// This blocks: it reads the file and waits for the disk. Call it on a thread for blocking work.
///
/// ```
/// # let directory = tempfile::tempdir().unwrap();
/// # let path = directory.path().join("tasks.db");
/// use longhaul_store::SystemClock;
/// use longhaul_store_sqlite::{SqliteOptions, open};
///
/// let store = open(&path, &SqliteOptions::default(), SystemClock)?;
///
/// let second = open(&path, &SqliteOptions::default(), SystemClock);
/// assert_eq!(second.unwrap_err().code(), "STORE_LOCKED");
/// # drop(store);
/// # Ok::<(), longhaul_store::OpenError>(())
/// ```
pub fn open(path: impl AsRef<Path>, options: &SqliteOptions, clock: impl Clock) -> Result<Embedded, OpenError> {
    let path = path.as_ref();
    let (disk, reader) = open_disk(path, options)?;
    Embedded::start(disk, reader, clock, &options.limits).map_err(|error| io_error(path, &error))
}

/// Opens a store only to look at it, while a server has it or not. Nothing is locked, migrated or written.
pub fn open_read_only(path: impl AsRef<Path>) -> Result<SqliteReader, OpenError> {
    let path = path.as_ref();
    let (_, version) = connect_read_only(path)?;
    let reader = SqliteReader::new(path.to_owned());
    Ok(if version < MIGRATIONS.len() { reader.of_version(version) } else { reader })
}

/// A connection that only reads, and the version of the file.
pub(crate) fn connect_read_only(path: &Path) -> Result<(Connection, usize), OpenError> {
    check::header(path)?;
    let connection =
        connection::reader(path, connection::mapped_bytes()).map_err(|error| sqlite_error(path, &error))?;
    match migration::version(&connection, path, MIGRATIONS.len())? {
        0 => Err(OpenError::Empty { store: display_path(path) }),
        version => Ok((connection, version)),
    }
}

/// Creates the directory of the file at this path, private to its user, with everything above it. [`open`] does not:
/// after a typing error in a path there would be a new, empty store.
pub fn create_directory(path: impl AsRef<Path>) -> Result<(), OpenError> {
    let path = path.as_ref();
    file::create_directory(path).map_err(|error| io_error(path, &error))
}

pub(crate) fn open_disk(path: &Path, options: &SqliteOptions) -> Result<(SqliteDisk, SqliteReader), OpenError> {
    let io = |error: std::io::Error| io_error(path, &error);
    if path.is_dir() {
        return Err(is_a_directory(path));
    }
    if !file::directory(path).is_dir() {
        let directory = display_path(file::directory(path));
        return Err(OpenError::NoDirectory { store: display_path(path), directory });
    }
    let path = &*file::own_name(path).map_err(io)?;
    if file::others_can_write(file::directory(path)) {
        let directory = display_path(file::directory(path));
        tracing::warn!(directory, "other users can write to the directory of the store, and so replace its files");
    }
    let lock = Lock::take(path)?;
    let is_new = file::create(path).map_err(io)?;
    let database = lock_database(path)?;
    let opened = open_file(path, is_new, options);
    if is_new && opened.is_err() {
        file::remove(path);
    }
    let connection = opened?;
    let files = lock.file().and_then(|lock| OpenFiles::of(path, database, lock)).map_err(io)?;
    Ok((SqliteDisk::new(path, connection, files, lock), SqliteReader::new(path.to_owned())))
}

fn open_file(path: &Path, is_new: bool, options: &SqliteOptions) -> Result<Connection, OpenError> {
    let io = |error: std::io::Error| io_error(path, &error);
    if file::has_other_names(path).map_err(io)? {
        let cause = "it has a second name (a hard link), under which another process could use it unnoticed".into();
        return Err(OpenError::Failed { store: display_path(path), cause });
    }
    if !is_new {
        check::header(path)?;
        file::sync_log(path).map_err(io)?;
    }
    let connection = open_writer(path, options)?;
    if is_new {
        // If the name of a new file is lost in a crash, so are its rows.
        file::sync_name(path).map_err(io)?;
    }
    Ok(connection)
}

fn open_writer(path: &Path, options: &SqliteOptions) -> Result<Connection, OpenError> {
    let sqlite = |error: rusqlite::Error| sqlite_error(path, &error);
    let mut connection = connection::open(path).map_err(sqlite)?;
    // Before the first write: the file may belong to another program.
    migration::version(&connection, path, MIGRATIONS.len())?;
    check::body(&connection, path)?;
    connection::prepare_to_write(&connection, options.synchronous).map_err(sqlite)?;
    migration::migrate(&mut connection, path, MIGRATIONS)?;
    if let Some(bytes_max) = options.file_bytes_max {
        connection::limit_size(&connection, bytes_max).map_err(sqlite)?;
    }
    Ok(connection)
}
