//! How connections are set up: the writer's and the readers'.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, ffi};

use crate::pool::CONNECTIONS_MAX;
use crate::value::to_sql;
use crate::{Synchronous, file};

/// How long to wait for another program that has locked the file, such as a shell or a backup tool.
const BUSY_MS_MAX: u64 = 5_000;

/// How long closing waits for other readers.
const FOLD_MS_MAX: u64 = 1_000;

/// Pages in the log before they are moved into the database (16 MiB). Larger moves pages that change often less often;
/// smaller keeps the log short and the pause at the end of a commit with it.
const CHECKPOINT_PAGES: u32 = 4_000;

/// A log that has grown longer is truncated to this size.
const LOG_BYTES_MAX: u32 = 64 << 20;

/// The writer's page cache. It writes mostly at the end of each tree, so it needs few pages.
const WRITER_CACHE_KIB: i64 = 1 << 10;

/// The page cache of a reader that maps the file. Beyond the mapped part it keeps the upper pages of the trees, so that a
/// row costs one read.
const MAPPING_READER_CACHE_KIB: i64 = 8 << 10;

/// The page cache of any other reader.
const READER_CACHE_KIB: i64 = 1 << 10;

/// How much of the database all connections together map into memory. The system counts mapped pages as memory of the
/// process, once for each connection that has read them.
pub(crate) const MAPPED_BYTES_MAX: i64 = 128 << 20;

/// More than the number of statements, so that none is compiled twice.
const STATEMENTS_MAX: usize = 64;

/// The connection of the writer, before it may write.
pub(crate) fn open(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | shared_flags())?;
    set_up(&connection, WRITER_CACHE_KIB, mapped_bytes())?;
    // Opening may still fail, and then the log must stay as it is.
    keep_log(&connection, file::has_log(path))?;
    Ok(connection)
}

/// Makes every commit durable from here on.
pub(crate) fn prepare_to_write(connection: &Connection, synchronous: Synchronous) -> rusqlite::Result<()> {
    let mode: String = connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
    if mode != "wal" {
        let why = format!("this file system cannot keep a write-ahead log (it offers {mode:?})");
        return Err(rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_ERROR), Some(why)));
    }
    connection.pragma_update(None, "synchronous", synchronous.as_str())?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    connection.pragma_update(None, "journal_size_limit", LOG_BYTES_MAX)?;
    // From here on only [`fold`] removes the log; a connection that is dropped after an error does not.
    keep_log(connection, true)
}

/// Moves the log into the file, so that the file alone is the store. Without a log the store can also be read from a
/// read-only file system.
pub(crate) fn fold(connection: &Connection) -> rusqlite::Result<()> {
    let mode = connection.pragma_update_and_check(None, "journal_mode", "delete", |row| row.get::<_, String>(0));
    if mode.is_ok_and(|mode| mode == "delete") {
        return Ok(());
    }
    // Another program has the file open. Then the log stays, but empty.
    connection.busy_timeout(Duration::from_millis(FOLD_MS_MAX))?;
    let is_busy: bool = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    if is_busy {
        let why = "another program is reading it".to_owned();
        return Err(rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_BUSY), Some(why)));
    }
    Ok(())
}

/// Sets whether the log stays after the last connection is closed.
fn keep_log(connection: &Connection, keep: bool) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keep).map(|_| ())
}

/// Limits the size of the file.
pub(crate) fn limit_size(connection: &Connection, bytes_max: u64) -> rusqlite::Result<()> {
    let page_bytes: u32 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
    let pages_max = (bytes_max / u64::from(page_bytes.max(1))).clamp(1, u64::from(u32::MAX) - 1);
    connection.pragma_update(None, "max_page_count", to_sql(pages_max))
}

/// A connection for a reader. It maps at most `mapped_bytes` of the file into memory.
pub(crate) fn reader(path: &Path, mapped_bytes: i64) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | shared_flags())?;
    set_up(&connection, if mapped_bytes > 0 { MAPPING_READER_CACHE_KIB } else { READER_CACHE_KIB }, mapped_bytes)?;
    Ok(connection)
}

/// The number of readers that map the file: one for each thread of a runtime, and one for the thread that starts it.
pub(crate) fn mapping_readers() -> usize {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    threads.saturating_add(1).min(CONNECTIONS_MAX)
}

/// How much of the file each of these readers maps. The writer maps as much.
pub(crate) fn mapped_bytes() -> i64 {
    MAPPED_BYTES_MAX / i64::try_from(mapping_readers() + 1).unwrap_or(i64::MAX)
}

/// No mutex: each connection is used by one thread at a time.
fn shared_flags() -> OpenFlags {
    OpenFlags::SQLITE_OPEN_NO_MUTEX
}

fn set_up(connection: &Connection, cache_kib: i64, mapped_bytes: i64) -> rusqlite::Result<()> {
    connection.busy_timeout(Duration::from_millis(BUSY_MS_MAX))?;
    connection.pragma_update(None, "cache_size", -cache_kib)?;
    connection.pragma_update(None, "mmap_size", mapped_bytes)?;
    connection.pragma_update(None, "temp_store", "memory")?;
    // Without this, every statement that could use a partial index is compiled again when its parameters change.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    Ok(())
}
