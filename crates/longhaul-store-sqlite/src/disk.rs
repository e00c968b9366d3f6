//! The disk of the writer: one connection, one transaction at a time.

use std::path::{Path, PathBuf};

use longhaul_store::embedded::{Disk, DiskError, Transaction};
use rusqlite::Connection;

use crate::connection;
use crate::identity::OpenFiles;
use crate::lock::Lock;
use crate::sqlite_connection::SqliteConnection;
use crate::transaction::SqliteTransaction;

/// The connection of the writer, with the lock that keeps other processes out.
#[derive(Debug)]
pub(crate) struct SqliteDisk {
    // Declared before the locks, and so dropped before them: the file is closed when the next process opens it.
    connection: SqliteConnection,
    path: PathBuf,
    files: OpenFiles,
    _lock: Lock,
}

impl SqliteDisk {
    pub(crate) fn new(path: &Path, connection: Connection, files: OpenFiles, lock: Lock) -> Self {
        Self { connection: SqliteConnection::new(connection), path: path.to_owned(), files, _lock: lock }
    }
}

impl Disk for SqliteDisk {
    fn begin(&mut self) -> Result<Box<dyn Transaction + '_>, DiskError> {
        Ok(Box::new(SqliteTransaction::begin(&mut self.connection)?))
    }

    fn verify(&mut self) -> Result<(), DiskError> {
        self.files.verify()
    }

    fn name(&self) -> String {
        format!("sqlite:{}", self.path.display())
    }

    fn close(&mut self) {
        if let Err(error) = connection::fold(&self.connection.inner) {
            let store = self.path.display();
            tracing::warn!(%store, %error, "the store is not in one file: a copy needs the -wal file beside it, too");
        }
    }
}
