//! A few reading connections, each used by one thread at a time.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use longhaul_store::embedded::DiskError;
use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};

use crate::connection;
use crate::error::disk_error;
use crate::session::Session;

/// The most connections. Reads are short, so a thread rarely waits for one.
const CONNECTIONS_MAX: usize = 16;

/// Connections are opened when they are first needed. A thread prefers the connection that it used before, because its pages
/// are cached.
#[derive(Debug)]
pub(crate) struct Pool {
    path: PathBuf,
    is_closed: AtomicBool,
    places: [Mutex<Option<Box<Session>>>; CONNECTIONS_MAX],
}

impl Pool {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, is_closed: AtomicBool::new(false), places: std::array::from_fn(|_| Mutex::default()) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A connection for the caller alone.
    pub(crate) fn take(&self) -> Result<MappedMutexGuard<'_, Box<Session>>, DiskError> {
        let home = home();
        let mut around = (0..CONNECTIONS_MAX).map(|step| &self.places[(home + step) % CONNECTIONS_MAX]);
        let mut display_path = around.find_map(Mutex::try_lock).unwrap_or_else(|| self.places[home].lock());
        let session = match display_path.take() {
            Some(session) => session,
            None if self.is_closed.load(Ordering::SeqCst) => {
                return Err(DiskError::Failed("the store is closed".into()));
            }
            None => Box::new(Session::new(connection::reader(&self.path).map_err(disk_error)?)),
        };
        Ok(MutexGuard::map(display_path, |display_path| display_path.insert(session)))
    }

    /// Closes every connection, after the reads under way, and opens no more.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        for display_path in &self.places {
            *display_path.lock() = None;
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
