//! A few reading connections, each used by one thread at a time.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use longhaul_store::embedded::DiskError;
use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};

use crate::connection;
use crate::error::disk_error;
use crate::sqlite_connection::SqliteConnection;

/// The most connections. Reads are short, so a thread rarely waits for one.
const CONNECTIONS_MAX: usize = 16;

/// Connections are opened when they are first needed. A thread prefers the connection that it used before, because its pages
/// are cached.
#[derive(Debug)]
pub(crate) struct Pool {
    path: PathBuf,
    is_closed: AtomicBool,
    slots: [Mutex<Option<Box<SqliteConnection>>>; CONNECTIONS_MAX],
}

impl Pool {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, is_closed: AtomicBool::new(false), slots: std::array::from_fn(|_| Mutex::default()) }
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
            None => Box::new(SqliteConnection::new(connection::reader(&self.path).map_err(disk_error)?)),
        };
        Ok(MutexGuard::map(slot, |slot| slot.insert(connection)))
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
