//! Whether a file can be trusted, as far as can be told before it is used.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use longhaul_store::OpenError;
use rusqlite::Connection;

use crate::error::{io_error, is_a_directory, place, sqlite_error};
use crate::file;

/// Files up to this size are read through when they are opened: that takes a fraction of a second.
///
/// In a larger one only the schema and the edges of each table are looked at. Damage further in is found when it is
/// read, and stops the store then. Whoever wants to know sooner makes a backup, which is always read through.
const READ_THROUGH_BYTES_MAX: i64 = 64 << 20;

/// What every SQLite file begins with.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Refuses what is no SQLite file or not a whole one, before SQLite gets to touch it. An empty file may become one.
pub(crate) fn header(path: &Path) -> Result<(), OpenError> {
    let mut head = Vec::with_capacity(18);
    if path.is_dir() {
        return Err(is_a_directory(path));
    }
    let read = File::open(path).and_then(|file| {
        (&file).take(18).read_to_end(&mut head)?;
        Ok(file.metadata()?.len())
    });
    let bytes = match read {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(OpenError::Missing { store: place(path) });
        }
        Err(error) => return Err(io_error(path, &error)),
    };
    match head.strip_prefix(MAGIC) {
        _ if head.is_empty() => Ok(()),
        // A crash may leave a torn page at the end; then the log still has it.
        Some(&[high, low]) if bytes % page_bytes(high, low) != 0 && !file::has_log(path) => {
            let cause = format!("it was cut off after {bytes} bytes");
            Err(OpenError::Damaged { store: place(path), cause })
        }
        Some(_) => Ok(()),
        None => Err(OpenError::NotADatabase { store: place(path) }),
    }
}

/// The page size as it stands behind the magic bytes, where 1 means the one that does not fit.
fn page_bytes(high: u8, low: u8) -> u64 {
    match u16::from_be_bytes([high, low]) {
        0 | 1 => 65_536,
        bytes => bytes.into(),
    }
}

/// Refuses what is damaged.
pub(crate) fn body(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let sqlite = |error: rusqlite::Error| sqlite_error(path, &error);
    let bytes: i64 = connection
        .query_row("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size", [], |row| row.get(0))
        .map_err(sqlite)?;
    if bytes <= READ_THROUGH_BYTES_MAX { read_through(connection, path) } else { edges(connection).map_err(sqlite) }
}

/// Reads every page and says what is wrong with the first that is.
pub(crate) fn read_through(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let found: String = connection
        .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
        .map_err(|error| sqlite_error(path, &error))?;
    if found == "ok" {
        return Ok(());
    }
    // SQLite says it in several lines; an error of ours is one.
    Err(OpenError::Damaged { store: place(path), cause: found.lines().collect::<Vec<_>>().join(" ") })
}

/// Reads the first and the last row of each table.
fn edges(connection: &Connection) -> rusqlite::Result<()> {
    let mut tables = connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'")?;
    let names = tables.query_map([], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?;
    for name in names {
        for order in ["ASC", "DESC"] {
            let edge = format!("SELECT * FROM \"{name}\" ORDER BY 1 {order} LIMIT 1");
            connection.prepare(&edge)?.query([])?.next()?;
        }
    }
    Ok(())
}
