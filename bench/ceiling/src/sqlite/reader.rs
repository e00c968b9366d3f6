//! Connections for reading, one per thread.
//!
//! Reading a row takes less time than a switch to another thread, so it runs on the thread of the request.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, Row};

use super::OWNER;
use crate::answer::Task;

const SELECT: &str = "SELECT created_at, updated_at, small_outcome FROM task WHERE owner = ?1 AND id = ?2";

thread_local! {
    static CONNECTION: RefCell<Option<Connection>> = const { RefCell::new(None) };
}

/// Opens a connection when a thread reads for the first time.
pub struct Readers {
    path: PathBuf,
}

impl Readers {
    pub fn new(path: &Path) -> Self {
        Self { path: path.into() }
    }

    /// The response to `tasks/get`, read from the file.
    pub fn detailed(&self, task_id: &str) -> rusqlite::Result<Option<String>> {
        CONNECTION.with_borrow_mut(|connection| {
            let connection = match connection {
                Some(connection) => connection,
                None => connection.insert(super::connect(&self.path)?),
            };
            connection.prepare_cached(SELECT)?.query_row([OWNER, task_id], |row| render(row, task_id)).optional()
        })
    }
}

fn render(row: &Row<'_>, task_id: &str) -> rusqlite::Result<String> {
    let result = row.get_ref(2)?.as_str_or_null()?;
    let task = Task { id: task_id, created_ms: row.get(0)?, updated_ms: row.get(1)?, result };
    Ok(task.detailed())
}
