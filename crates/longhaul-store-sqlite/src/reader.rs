//! Reads of what is committed.
//!
//! A read of one row takes microseconds, less than handing it to another thread, so it runs on the thread of its
//! caller, on one of a few connections.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use longhaul_store::embedded::{DiskError, Reader};
use longhaul_store::{
    Backup, BackupError, HeldAttempt, KeyedTask, ListQuery, OpenError, ReadOnlyStore, Snapshot, StoreError,
    StoreReport, TaskCount, TaskHistory, TaskPage,
};
use longhaul_task::{JournalEntry, Owner, QuestionKey, TaskId, TaskKey, Timestamp, ToolRef};
use rusqlite::{Params, params};

use crate::error::display_path;
use crate::journal;
use crate::pool::Pool;
use crate::row::{Columns, SELECT_KEYED_TASK, SELECT_TASK, select_task};
use crate::value::{time_to_sql, to_sql};

const LIST: &str = select_task!("WHERE task.owner = ?1 ORDER BY task.id DESC LIMIT ?2");
const LIST_PAST: &str = select_task!("WHERE task.owner = ?1 AND task.id < ?2 ORDER BY task.id DESC LIMIT ?3");
const LIST_ALL: &str = select_task!("ORDER BY task.owner DESC, task.id DESC LIMIT ?1");
const LIST_ALL_PAST: &str =
    select_task!("WHERE (task.owner, task.id) < (?1, ?2) ORDER BY task.owner DESC, task.id DESC LIMIT ?3");
const CHILDREN: &str = "SELECT id FROM task WHERE owner = ?1 AND parent = ?2 ORDER BY ordinal";
const ASKING_CHILD: &str = "SELECT id FROM task INDEXED BY task_asking_child
  WHERE owner = ?1 AND parent = ?2 AND questions IS NOT NULL ORDER BY ordinal LIMIT 1";
// The due tasks, one more than the limit, and the first that is not due yet: the first after the limit is the next. One
// statement, so that no commit falls between the two halves.
const DUE: &str = "SELECT * FROM (SELECT due_at, owner, id FROM task WHERE due_at <= ?1
    ORDER BY due_at, owner, id LIMIT ?2)
  UNION ALL
  SELECT * FROM (SELECT due_at, owner, id FROM task WHERE due_at > ?1 ORDER BY due_at, owner, id LIMIT 1)";
// The first queued task of the next tool, however many tasks of each tool are queued.
const FIRST_QUEUED: &str = "SELECT tool, version, not_before FROM task
  WHERE not_before IS NOT NULL AND (tool, version) > (?1, ?2) ORDER BY tool, version, not_before LIMIT 1";
// Reads every open task. It is needed after a start, and after the clock was set back.
// Most questions have no deadline, and `instr` is much faster than `json_each`.
pub(crate) const BEGAN_AFTER: &str = "SELECT owner, id FROM task INDEXED BY task_open
  WHERE settled_at IS NULL AND (run_since > ?1 OR questions IS NOT NULL AND instr(questions, '\"deadline\"') > 0 AND EXISTS (
    SELECT 1 FROM json_each(questions) WHERE value ->> '$.deadline.wait.since' > ?1)) LIMIT ?2";
const HELD: &str = "SELECT owner, id, node, fence FROM task INDEXED BY task_open
  WHERE settled_at IS NULL AND (owner, id) > (?1, ?2) AND node IS NOT NULL ORDER BY owner, id LIMIT ?3";
const CENSUS: &str = "SELECT owner, tool, version, phase, count(*), count(not_before) FROM task INDEXED BY task_open
  WHERE settled_at IS NULL GROUP BY owner, tool, version, phase";

/// Reads a store, also while a server uses it.
#[derive(Debug)]
pub struct SqliteReader {
    pool: Pool,
    /// The version of a file that is older than this program. Its tables may differ.
    older: Option<usize>,
}

impl SqliteReader {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { pool: Pool::new(path), older: None }
    }

    pub(crate) fn of_version(self, older: usize) -> Self {
        Self { older: Some(older), ..self }
    }

    fn must_be_current(&self) -> Result<(), StoreError> {
        self.older.map_or(Ok(()), |version| {
            let cause = format!("it has version {version}, and must be opened by a server once to become current");
            Err(StoreError::Unavailable(cause))
        })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.pool.path()
    }

    fn row<T>(
        &self,
        sql: &'static str,
        params: impl Params,
        read: impl FnOnce(Columns<'_, '_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, DiskError> {
        self.pool.take()?.statements().row(sql, params, read)
    }

    fn rows<T>(
        &self,
        sql: &'static str,
        params: impl Params,
        read: impl FnMut(Columns<'_, '_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, DiskError> {
        self.pool.take()?.statements().rows(sql, params, read)
    }
}

#[async_trait]
impl ReadOnlyStore for SqliteReader {
    async fn read(&self, key: &TaskKey) -> Result<Snapshot, StoreError> {
        self.must_be_current()?;
        Reader::read(self, key)?.ok_or(StoreError::NotFound)
    }

    async fn list(&self, of: &ListQuery) -> Result<TaskPage, StoreError> {
        self.must_be_current()?;
        Ok(Reader::list(self, of)?)
    }

    async fn history(&self, key: &TaskKey) -> Result<TaskHistory, StoreError> {
        self.must_be_current()?;
        Ok(Reader::history(self, key)?)
    }

    async fn check(&self) -> Result<StoreReport, StoreError> {
        self.must_be_current()?;
        let path = self.path().to_owned();
        let read = tokio::task::spawn_blocking(move || crate::report::report(&path)).await;
        let unavailable = |error: &dyn std::fmt::Display| StoreError::Unavailable(error.to_string());
        read.map_err(|error| unavailable(&error))?.map_err(|error| unavailable(&error))
    }

    async fn backup(&self, to: &Path) -> Result<Backup, BackupError> {
        let (from, to) = (self.path().to_owned(), to.to_owned());
        let stopped = OpenError::Failed { store: display_path(&from), cause: "the runtime has stopped".into() };
        let copied = tokio::task::spawn_blocking(move || crate::backup(from, to)).await;
        copied.unwrap_or(Err(BackupError::From(stopped)))
    }
}

impl Reader for SqliteReader {
    fn close(&self) {
        self.pool.close();
    }

    fn read(&self, key: &TaskKey) -> Result<Option<Snapshot>, DiskError> {
        let params = [key.owner.as_str(), key.id.as_str()];
        self.row(SELECT_TASK, params, |columns| columns.snapshot(Some(key)))
    }

    fn keyed_task(&self, owner: &Owner, key: &str) -> Result<Option<KeyedTask>, DiskError> {
        self.row(SELECT_KEYED_TASK, [owner.as_str(), key], |mut columns| columns.keyed_task())
    }

    fn list(&self, of: &ListQuery) -> Result<TaskPage, DiskError> {
        // One task more than the limit shows whether there are more.
        let limit = to_sql(of.limit as u64).saturating_add(1);
        let snapshot = |columns: Columns<'_, '_>| columns.snapshot(None);
        let mut tasks = match (&of.owner, &of.after) {
            (None, None) => self.rows(LIST_ALL, [limit], snapshot)?,
            (None, Some(after)) => {
                self.rows(LIST_ALL_PAST, params![after.owner.as_str(), after.id.as_str(), limit], snapshot)?
            }
            (Some(owner), Some(after)) if after.owner == *owner => {
                self.rows(LIST_PAST, params![owner.as_str(), after.id.as_str(), limit], snapshot)?
            }
            // After a task of another owner: after all tasks of this owner, or before them.
            (Some(owner), Some(after)) if after.owner < *owner => Vec::new(),
            (Some(owner), _) => self.rows(LIST, params![owner.as_str(), limit], snapshot)?,
        };
        let has_more = tasks.len() > of.limit;
        tasks.truncate(of.limit);
        Ok(TaskPage { tasks, has_more })
    }

    fn children(&self, key: &TaskKey) -> Result<Vec<TaskId>, DiskError> {
        self.rows(CHILDREN, [key.owner.as_str(), key.id.as_str()], |mut columns| columns.id())
    }

    fn asking_child(&self, key: &TaskKey) -> Result<Option<TaskId>, DiskError> {
        let params = [key.owner.as_str(), key.id.as_str()];
        self.row(ASKING_CHILD, params, |mut columns| columns.id())
    }

    fn journal(&self, key: &TaskKey, epoch: u32) -> Result<Vec<JournalEntry>, DiskError> {
        journal::of_epoch(&mut self.pool.take()?.statements(), key, epoch)
    }

    fn question(&self, key: &TaskKey, question: &QuestionKey) -> Result<Option<JournalEntry>, DiskError> {
        Ok(journal::question(&mut self.pool.take()?.statements(), key, question)?.map(|(_, entry)| entry))
    }

    fn history(&self, key: &TaskKey) -> Result<TaskHistory, DiskError> {
        journal::history(&mut self.pool.take()?.statements(), key)
    }

    fn due(&self, now: Timestamp, limit: usize) -> Result<(Vec<TaskKey>, Option<Timestamp>), DiskError> {
        let params = params![time_to_sql(now), to_sql(limit as u64).saturating_add(1)];
        let rows = self.rows(DUE, params, |mut columns| Ok((columns.time()?, columns.key()?)))?;
        let due = rows.iter().take(limit).take_while(|(at, _)| *at <= now).count();
        let next = rows.get(due).map(|(at, _)| *at);
        Ok((rows.into_iter().take(due).map(|(_, key)| key).collect(), next))
    }

    fn began_after(&self, now: Timestamp, limit: usize) -> Result<Vec<TaskKey>, DiskError> {
        self.rows(BEGAN_AFTER, params![time_to_sql(now), to_sql(limit as u64)], |mut columns| columns.key())
    }

    fn queued_tools(&self) -> Result<Vec<(ToolRef, Timestamp)>, DiskError> {
        let mut connection = self.pool.take()?;
        let mut statements = connection.statements();
        let mut tools: Vec<(ToolRef, Timestamp)> = Vec::new();
        loop {
            let past = tools.last().map_or(["", ""], |(tool, _)| [&*tool.name, &*tool.version]);
            let first = statements.row(FIRST_QUEUED, past, |mut columns| Ok((columns.tool()?, columns.time()?)))?;
            let Some(first) = first else { return Ok(tools) };
            tools.push(first);
        }
    }

    fn held(&self, after: Option<&TaskKey>, limit: usize) -> Result<Vec<HeldAttempt>, DiskError> {
        // Names are not empty, so the empty one comes before all.
        let (owner, id) = after.map_or(("", ""), |after| (after.owner.as_str(), after.id.as_str()));
        let params = params![owner, id, to_sql(limit as u64)];
        let rows = self.rows(HELD, params, |mut columns| {
            let key = columns.key()?;
            let held = columns.node().and_then(|node| Ok((node, columns.fence()?)));
            Ok(readable(held, |error| tracing::error!(task = %key.id, owner = %key.owner, %error, "a task is damaged"))
                .map(|(node, fence)| HeldAttempt { key, node, fence }))
        })?;
        Ok(rows.into_iter().flatten().collect())
    }

    fn count_open_tasks(&self) -> Result<Vec<TaskCount>, DiskError> {
        let rows = self.rows(CENSUS, [], |mut columns| {
            let (owner, tool) = (columns.owner()?, columns.tool()?);
            let phase = readable(columns.phase_name(), |error| {
                tracing::error!(%owner, %tool, %error, "damaged tasks are not counted");
            });
            let (tasks, queued) = (columns.count()?, columns.count()?);
            Ok(phase.map(|phase| TaskCount { owner, tool, phase, tasks, queued }))
        })?;
        Ok(rows.into_iter().flatten().collect())
    }
}

/// Logs an error and returns `None` if the row is damaged, so that the rows of other tasks are still read.
fn readable<T>(columns: rusqlite::Result<T>, log: impl FnOnce(&rusqlite::Error)) -> Option<T> {
    columns.inspect_err(log).ok()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::migration::{MIGRATIONS, migrate};
    use crate::transaction;

    /// A scan of a million rows blocks the writer for a second, so every lookup uses an index that also has its order.
    /// Only the operator's list reads the table in order, and stops at its limit.
    #[test]
    fn no_statement_scans_or_sorts_a_table() {
        let mut connection = rusqlite::Connection::open_in_memory().unwrap();
        migrate(&mut connection, Path::new("memory"), MIGRATIONS).unwrap();
        let readers = [
            LIST,
            LIST_PAST,
            LIST_ALL_PAST,
            CHILDREN,
            ASKING_CHILD,
            journal::SELECT_EPOCH,
            journal::SELECT_ALL,
            DUE,
            FIRST_QUEUED,
            HELD,
            SELECT_TASK,
        ];
        for sql in readers.iter().chain(transaction::LOOKUPS) {
            let mut explain = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let rows = explain.raw_query().mapped(|row| row.get::<_, String>(3)).collect::<Result<Vec<_>, _>>();
            let plan = rows.unwrap();
            let fits = |step: &String| {
                step.starts_with("SEARCH")
                    || step.contains("INDEX task_due")
                    || !(step.starts_with("SCAN task")
                        || step.starts_with("SCAN child")
                        || step.contains("TEMP B-TREE"))
            };
            assert!(plan.iter().all(fits), "{sql}\n{plan:#?}");
        }
    }
}
