//! A few reading connections, each used by one thread at a time.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use longhaul_store::embedded::DiskError;
use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};
use rusqlite::Connection;

use crate::connection;
use crate::error::disk_error;
use crate::sqlite_connection::SqliteConnection;

/// The most connections. Reads are short, so a thread rarely waits for one.
pub(crate) const CONNECTIONS_MAX: usize = 16;

/// Connections are opened when they are first needed. A thread prefers the connection that it used before, because its pages
/// are cached.
#[derive(Debug)]
pub(crate) struct Pool {
    path: PathBuf,
    is_closed: AtomicBool,
    opened: AtomicUsize,
    slots: [Mutex<Option<Box<SqliteConnection>>>; CONNECTIONS_MAX],
}

impl Pool {
    pub(crate) fn new(path: PathBuf) -> Self {
        let slots = std::array::from_fn(|_| Mutex::default());
        Self { path, is_closed: AtomicBool::new(false), opened: AtomicUsize::new(0), slots }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A connection for the caller alone.
    pub(crate) fn take(&self) -> Result<MappedMutexGuard<'_, Box<SqliteConnection>>, DiskError> {
        let home = home();
        let mut from_home = (0..CONNECTIONS_MAX).map(|step| &self.slots[(home + step) % CONNECTIONS_MAX]);
        let mut slot = from_home.find_map(Mutex::try_lock).unwrap_or_else(|| self.slots[home].lock());
        let connection = match slot.take() {
            Some(connection) => connection,
            None if self.is_closed.load(Ordering::SeqCst) => {
                return Err(DiskError::Failed("the store is closed".into()));
            }
            None => Box::new(SqliteConnection::new(self.open().map_err(disk_error)?)),
        };
        Ok(MutexGuard::map(slot, |slot| slot.insert(connection)))
    }

    /// Opens a connection. Only the first ones map the file, so that the sum is limited.
    fn open(&self) -> rusqlite::Result<Connection> {
        let is_mapping = self.opened.fetch_add(1, Ordering::Relaxed) < connection::mapping_readers();
        connection::reader(&self.path, if is_mapping { connection::mapped_bytes() } else { 0 })
    }

    /// Closes every connection, after the reads under way, and opens no more.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        for slot in &self.slots {
            *slot.lock() = None;
        }
    }
}

/// The connection that this thread tries first.
fn home() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static HOME: usize = THREADS.fetch_add(1, Ordering::Relaxed) % CONNECTIONS_MAX;
    }
    HOME.with(|home| *home)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_connections_together_map_only_so_much_of_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tasks.db");
        drop(Connection::open(&path).unwrap());
        let pool = Pool::new(path.clone());
        let readers: Vec<_> = (0..CONNECTIONS_MAX).map(|_| pool.take().unwrap()).collect();
        let writer = connection::open(&path).unwrap();
        let mapped = |connection: &Connection| -> i64 {
            connection.pragma_query_value(None, "mmap_size", |row| row.get(0)).unwrap()
        };
        let sum = mapped(&writer) + readers.iter().map(|reader| mapped(&reader.inner)).sum::<i64>();
        let max = connection::MAPPED_BYTES_MAX;
        assert!((max / 2..=max).contains(&sum), "{sum} of {max}");
    }
}
