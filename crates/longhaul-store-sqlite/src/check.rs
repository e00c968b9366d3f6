//! Checks of a file before it is used.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use longhaul_store::OpenError;
use rusqlite::Connection;

use crate::error::{display_path, io_error, is_a_directory, sqlite_error};
use crate::file;

/// Files up to this size are read completely when they are opened, which takes a fraction of a second.
///
/// Of a larger file only the schema and the first and last rows of each table are read. Damage elsewhere is found when it
/// is read, and stops the store then. A backup finds it sooner: it is always read completely.
const READ_THROUGH_BYTES_MAX: i64 = 64 << 20;

/// The first bytes of every SQLite file.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Refuses a file that is not a complete SQLite file, before SQLite opens it. An empty file is accepted.
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
            return Err(OpenError::Missing { store: display_path(path) });
        }
        Err(error) => return Err(io_error(path, &error)),
    };
    match head.strip_prefix(MAGIC) {
        _ if head.is_empty() => Ok(()),
        // A crash may leave half a page at the end; then the page is still in the log.
        Some(&[high, low]) if bytes % page_bytes(high, low) != 0 && !file::has_log(path) => {
            let cause = format!("it was cut off after {bytes} bytes");
            Err(OpenError::Damaged { store: display_path(path), cause })
        }
        Some(_) => Ok(()),
        None => Err(OpenError::NotADatabase { store: display_path(path) }),
    }
}

/// The page size from the header, where 1 means 65,536, which does not fit.
fn page_bytes(high: u8, low: u8) -> u64 {
    match u16::from_be_bytes([high, low]) {
        0 | 1 => 65_536,
        bytes => bytes.into(),
    }
}

/// Refuses a damaged file.
pub(crate) fn body(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let sqlite = |error: rusqlite::Error| sqlite_error(path, &error);
    let bytes: i64 = connection
        .query_row("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size", [], |row| row.get(0))
        .map_err(sqlite)?;
    if bytes <= READ_THROUGH_BYTES_MAX { read_through(connection, path) } else { edges(connection).map_err(sqlite) }
}

/// Reads every page, and compares the tables with their indexes: a bit that is wrong in a key is found only so. The error
/// names the first problem.
pub(crate) fn read_through(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let found: String = connection
        .query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))
        .map_err(|error| sqlite_error(path, &error))?;
    if found == "ok" {
        return Ok(());
    }
    // SQLite's description may have several lines; an error message has one.
    Err(OpenError::Damaged { store: display_path(path), cause: found.lines().collect::<Vec<_>>().join(" ") })
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
