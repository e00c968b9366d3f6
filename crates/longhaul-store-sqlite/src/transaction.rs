//! The transactions of the writer. The statements of the journal and of attempts are in `journal`.

use longhaul_store::embedded::{DiskError, Transaction};
use longhaul_store::{IdempotencyKey, KeyedTask};
use longhaul_task::{
    AttemptRecord, ChildRange, JournalEntry, Json, Outcome, Owner, Progress, QuestionKey, Task, TaskId, TaskKey,
    Timestamp, ToolRef,
};
use rusqlite::params;
use rusqlite::types::ValueRef;

use crate::row::{SELECT_INPUT, SELECT_KEYED_TASK, SELECT_TASK, select_task};
use crate::sqlite_connection::{SqliteConnection, Statements};
use crate::task_columns::{PhaseColumns, began_at, outcome_columns, task_columns};
use crate::value::{maybe_number, maybe_text, number, text, time_to_sql, to_sql};
use crate::{checksum, journal};

const HAS_OPEN_CHILD: &str = "SELECT 1 FROM task WHERE owner = ?1 AND parent = ?2 AND settled_at IS NULL
  AND ordinal BETWEEN ?3 AND ?4 AND ordinal IS NOT ?5 LIMIT 1";
// All descendants of a settled task are settled, so the search follows open tasks only.
const OPEN_DESCENDANTS: &str = select_task!(
    "WHERE task.owner = ?1 AND task.id IN (WITH RECURSIVE below (id) AS (
       SELECT id FROM task WHERE owner = ?1 AND parent = ?2 AND settled_at IS NULL
       UNION ALL
       SELECT child.id FROM below JOIN task AS child
         ON child.owner = ?1 AND child.parent = below.id AND child.settled_at IS NULL
     ) SELECT id FROM below)"
);
const QUEUED: &str = "SELECT not_before, id FROM task
  WHERE tool = ?1 AND version = ?2 AND owner = ?3 AND not_before IS NOT NULL
  ORDER BY not_before, created_at, id LIMIT ?4";
// The first queued task of the next owner, however many tasks each owner has.
const NEXT_QUEUED_OWNER: &str = "SELECT owner, not_before FROM task
  WHERE tool = ?1 AND version = ?2 AND owner > ?3 AND not_before IS NOT NULL ORDER BY owner, not_before LIMIT 1";
const FAMILY: &str = "WITH RECURSIVE family (id) AS (
    VALUES (?2)
    UNION ALL
    SELECT child.id FROM family JOIN task AS child ON child.owner = ?1 AND child.parent = family.id
  ) SELECT id FROM family";

const INSERT: &str = "INSERT INTO task (owner, id, root, parent, family_since, depth, children, ordinal, tool, version,
    origin, on_crash, attempts_max, backoff_ms, backoff_ms_max, running_ms_max, life_ms_max,
    retention_from_creation_ms, retention_from_end_ms, created_at, updated_at, revision, fence, attempt, spent,
    questions_asked, message, phase, not_before, node, run_since, questions, wake_at, wake_children, outcome,
    settled_at, due_at, small_input, small_outcome, checksum, input_checksum)
  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24,
    ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34, ?35, ?36, ?37, ?38, ?39, ?40, ?41)
  ON CONFLICT DO NOTHING";
/// Inserts what most creations insert: a root that runs. See [`new_root`].
const INSERT_NEW_ROOT: &str = "INSERT INTO task (owner, id, tool, version, origin, on_crash, attempts_max, backoff_ms,
    backoff_ms_max, running_ms_max, life_ms_max, retention_from_creation_ms, retention_from_end_ms, created_at,
    updated_at, revision, fence, attempt, node, run_since, due_at, small_input, small_outcome, checksum, input_checksum,
    depth, children, ordinal, spent, questions_asked, phase)
  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24,
    ?25, 0, 0, 0, 0, 0, 'running')
  ON CONFLICT DO NOTHING";
const INSERT_INPUT: &str = "INSERT INTO input (owner, id, body) VALUES (?1, ?2, ?3)";

const INSERT_KEY: &str = "INSERT INTO idempotency (owner, key, id, digest, checksum) VALUES (?1, ?2, ?3, ?4, ?5)";

/// SQLite writes an index again whenever an update names one of its columns, changed or not. So there is one statement
/// for each set of indexes that a change can affect, which names only their columns.
macro_rules! update_task {
    ($more:literal) => {
        concat!(
            "UPDATE task SET children = ?4, updated_at = ?5, revision = ?6, fence = ?7, attempt = ?8, spent = ?9, ",
            "questions_asked = ?10, message = ?11, phase = ?12, node = ?13, run_since = ?14, questions = ?15, ",
            "wake_at = ?16, wake_children = ?17, checksum = ?18, began_at = ?19",
            $more,
            " WHERE owner = ?1 AND id = ?2 AND revision = ?3"
        )
    };
}
const UPDATE_IN_PLACE: &str = update_task!("");
const UPDATE_DUE: &str = update_task!(", due_at = ?20");
const UPDATE_QUEUE: &str = update_task!(", due_at = ?20, not_before = ?21");
/// The end of a task changes neither `children` nor `attempt` nor `questions_asked`, so they are not written.
macro_rules! settle_task {
    ($more:literal) => {
        concat!(
            "UPDATE task SET updated_at = ?4, revision = ?5, fence = ?6, spent = ?7, message = ?8, node = ?9, ",
            "run_since = ?10, began_at = ?11, outcome = ?12, settled_at = ?13, due_at = ?14, small_outcome = ?15, ",
            "checksum = ?16, phase = 'settled', questions = NULL, wake_at = NULL, wake_children = NULL",
            $more,
            " WHERE owner = ?1 AND id = ?2 AND revision = ?3"
        )
    };
}
const SETTLE: &str = settle_task!("");
const SETTLE_IN_QUEUE: &str = settle_task!(", not_before = NULL");

const INSERT_OUTCOME: &str = "INSERT INTO outcome (owner, id, body, code, message) VALUES (?1, ?2, ?3, ?4, ?5)";
const WRITE_PROGRESS: &str = "INSERT INTO progress (owner, id, done, total, message, at)
  VALUES (?1, ?2, ?3, ?4, ?5, ?6)
  ON CONFLICT DO UPDATE SET done = excluded.done, total = excluded.total, message = excluded.message, at = excluded.at";
const DELETE_PROGRESS: &str = "DELETE FROM progress WHERE owner = ?1 AND id = ?2";
/// Deletes everything that is stored for a task.
const DELETE: [&str; 6] = [
    "DELETE FROM task WHERE owner = ?1 AND id = ?2",
    "DELETE FROM input WHERE owner = ?1 AND id = ?2",
    "DELETE FROM outcome WHERE owner = ?1 AND id = ?2",
    DELETE_PROGRESS,
    "DELETE FROM journal WHERE owner = ?1 AND id = ?2",
    "DELETE FROM attempt WHERE owner = ?1 AND id = ?2",
];
/// Only the root of a family can have an idempotency key.
const DELETE_KEY: &str = "DELETE FROM idempotency WHERE owner = ?1 AND id = ?2";
const INSERT_SECRET: &str = "INSERT INTO secret (name, value) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
const INSERT_CHECK: &str = "INSERT OR REPLACE INTO secret (name, value) VALUES ('check', zeroblob(?1))";
const DELETE_CHECK: &str = "DELETE FROM secret WHERE name = 'check'";
/// The largest input and result that are stored in the row of their task. Most tasks then need one tree instead of three,
/// and a row with both still fits into a quarter of a page, the most that SQLite keeps in one piece.
const SMALL_BYTES_MAX: usize = 320;
/// More than can be left free at the end of a page, so that the check needs a new one.
const CHECK_BYTES: i64 = 64 << 10;
const SECRET: &str = "SELECT value FROM secret WHERE name = ?1";

/// The open transaction of the writer.
pub(crate) struct SqliteTransaction<'c> {
    statements: Statements<'c>,
}

impl<'c> SqliteTransaction<'c> {
    pub(crate) fn begin(connection: &'c mut SqliteConnection) -> Result<Self, DiskError> {
        let mut transaction = Self { statements: connection.statements() };
        transaction.statements.execute("BEGIN IMMEDIATE", [])?;
        Ok(transaction)
    }

    /// Writes what does not fit into the row of the task.
    fn write_outcome(&mut self, key: &TaskKey, outcome: &Outcome) -> Result<(), DiskError> {
        if small_outcome(outcome).is_some() || *outcome == Outcome::Cancelled {
            return Ok(());
        }
        let (body, code, message) = outcome_columns(outcome);
        let params = params![key.owner.as_str(), key.id.as_str(), body.map(Json::as_str), code, message];
        self.statements.execute(INSERT_OUTCOME, params).map(|_| ())
    }
}

impl Drop for SqliteTransaction<'_> {
    fn drop(&mut self) {
        // After a commit, and after some errors, SQLite has no open transaction.
        if !self.statements.connection().is_autocommit()
            && let Err(error) = self.statements.execute("ROLLBACK", [])
        {
            tracing::error!(%error, "a transaction could not be rolled back");
        }
    }
}

/// The values of [`INSERT`] after `columns`.
fn columns_after_phase<'v>(task: &'v Task, input: &'v Json, columns: &[ValueRef<'_>; 36]) -> [ValueRef<'v>; 5] {
    [
        maybe_number(task.due_at().map(time_to_sql)),
        maybe_text(small(input)),
        maybe_text(task.phase.outcome().and_then(small_outcome)),
        number(checksum::of_task(task, columns)),
        number(checksum::of_input(input)),
    ]
}

/// The values of [`INSERT_NEW_ROOT`] up to `run_since`. `None` if the task is not a new, running root: the statement sets its
/// other columns to NULL, 0 or 'running'. Each value that is not bound makes a creation cheaper.
fn new_root<'c, 'v>(columns: &'c [ValueRef<'v>; 36]) -> Option<[&'c [ValueRef<'v>]; 3]> {
    const NULL: ValueRef<'_> = ValueRef::Null;
    const ZERO: ValueRef<'_> = ValueRef::Integer(0);
    let (key, rest) = columns.split_at(2);
    let (family, rest) = rest.split_at(6);
    let (middle, rest) = rest.split_at(16);
    let (history, rest) = rest.split_at(3);
    let (phase, rest) = rest.split_at(2);
    let (run, rest) = rest.split_at(2);
    let is_new_root = family == [NULL, NULL, NULL, ZERO, ZERO, ZERO]
        && history == [ZERO, ZERO, NULL]
        && phase == [text("running"), NULL]
        && rest.iter().all(|value| *value == NULL);
    is_new_root.then_some([key, middle, run])
}

/// A text that is stored in the row of its task.
fn small(json: &Json) -> Option<&str> {
    (json.bytes() <= SMALL_BYTES_MAX).then(|| json.as_str())
}

/// The body of a result that is stored in the row of its task.
fn small_outcome(outcome: &Outcome) -> Option<&str> {
    match outcome {
        Outcome::Result { body, .. } => small(body),
        Outcome::Error(_) | Outcome::Cancelled => None,
    }
}

impl Transaction for SqliteTransaction<'_> {
    fn commit(mut self: Box<Self>) -> Result<(), DiskError> {
        self.statements.execute("COMMIT", []).map(|_| ())
    }

    fn task(&mut self, key: &TaskKey) -> Result<Option<Task>, DiskError> {
        self.statements.row(SELECT_TASK, [key.owner.as_str(), key.id.as_str()], |mut columns| columns.task(Some(key)))
    }

    fn input(&mut self, key: &TaskKey) -> Result<Option<Json>, DiskError> {
        self.statements.row(SELECT_INPUT, [key.owner.as_str(), key.id.as_str()], |mut columns| columns.input())
    }

    fn has_open_child(&mut self, key: &TaskKey, range: ChildRange, except: Option<u32>) -> Result<bool, DiskError> {
        let params = params![key.owner.as_str(), key.id.as_str(), range.first, range.last, except];
        Ok(self.statements.row(HAS_OPEN_CHILD, params, |mut columns| columns.count())?.is_some())
    }

    fn open_descendants(&mut self, key: &TaskKey) -> Result<Vec<Task>, DiskError> {
        self.statements.rows(OPEN_DESCENDANTS, [key.owner.as_str(), key.id.as_str()], |mut columns| columns.task(None))
    }

    fn queued(&mut self, tool: &ToolRef, owner: &Owner, limit: usize) -> Result<Vec<(Timestamp, TaskId)>, DiskError> {
        let params = params![&*tool.name, &*tool.version, owner.as_str(), to_sql(limit as u64)];
        self.statements.rows(QUEUED, params, |mut columns| Ok((columns.time()?, columns.id()?)))
    }

    fn queued_owners(&mut self, tool: &ToolRef) -> Result<Vec<(Owner, Timestamp)>, DiskError> {
        let mut owners: Vec<(Owner, Timestamp)> = Vec::new();
        loop {
            let last = owners.last().map_or("", |(owner, _)| owner.as_str());
            let params = [&*tool.name, &*tool.version, last];
            let next = self
                .statements
                .row(NEXT_QUEUED_OWNER, params, |mut columns| Ok((columns.owner()?, columns.time()?)))?;
            let Some(next) = next else { return Ok(owners) };
            owners.push(next);
        }
    }

    fn keyed_task(&mut self, owner: &Owner, key: &str) -> Result<Option<KeyedTask>, DiskError> {
        self.statements.row(SELECT_KEYED_TASK, [owner.as_str(), key], |mut columns| columns.keyed_task())
    }

    fn insert(&mut self, task: &Task, input: &Json) -> Result<bool, DiskError> {
        let (owner, id) = (task.key.owner.as_str(), task.key.id.as_str());
        let phase = PhaseColumns::of(&task.phase)?;
        let columns = task_columns(task, &phase);
        let more = columns_after_phase(task, input, &columns);
        let rows = match new_root(&columns) {
            Some([key, middle, run]) => self.statements.execute_values(INSERT_NEW_ROOT, &[key, middle, run, &more])?,
            None => self.statements.execute_values(INSERT, &[&columns, &more])?,
        };
        if rows == 0 {
            return Ok(false);
        }
        if small(input).is_none() {
            self.statements.execute(INSERT_INPUT, [owner, id, input.as_str()])?;
        }
        if let Some(outcome) = task.phase.outcome() {
            self.write_outcome(&task.key, outcome)?;
        }
        Ok(true)
    }

    fn insert_key(&mut self, task: &TaskKey, key: &IdempotencyKey) -> Result<(), DiskError> {
        let checksum = checksum::of_key(task, key);
        let params = params![task.owner.as_str(), &*key.key, task.id.as_str(), key.digest, checksum];
        self.statements.execute(INSERT_KEY, params).map(|_| ())
    }

    fn update(&mut self, before: &Task, after: &Task) -> Result<(), DiskError> {
        let phase = PhaseColumns::of(&after.phase)?;
        let (owner, id, was) = (after.key.owner.as_str(), after.key.id.as_str(), to_sql(before.revision));
        let due_at = maybe_number(after.due_at().map(time_to_sql));
        let (updated_at, revision) = (number(time_to_sql(after.updated_at)), number(to_sql(after.revision)));
        let (fence, failed_attempts) = (number(to_sql(after.fence)), number(after.failed_attempts));
        let message = maybe_text(after.message.as_deref());
        let (node, run_since, began_at) =
            (phase.node_text(), maybe_number(phase.run_since), maybe_number(began_at(after)));
        let checksum = number(checksum::of_task(after, &task_columns(after, &phase)));
        let key = [text(owner), text(id), number(was)];
        let rows = if let Some(outcome) = after.phase.outcome() {
            let left_out = |task: &Task| (task.family.children, task.attempt, task.questions_asked);
            if left_out(before) != left_out(after) {
                // The checksum covers these columns, so the row would count as damaged.
                let why = "the end of a task cannot be stored with a change of its children, attempts or questions";
                return Err(DiskError::Failed(why.into()));
            }
            self.write_outcome(&after.key, outcome)?;
            let sql = if before.phase.not_before().is_some() { SETTLE_IN_QUEUE } else { SETTLE };
            let task = [updated_at, revision, fence, failed_attempts, message, node, run_since, began_at];
            let end = [
                maybe_text(phase.outcome),
                maybe_number(phase.settled_at),
                due_at,
                maybe_text(small_outcome(outcome)),
                checksum,
            ];
            self.statements.execute_values(sql, &[&key, &task, &end])?
        } else {
            let task = [
                number(after.family.children),
                updated_at,
                revision,
                fence,
                number(after.attempt),
                failed_attempts,
                number(after.questions_asked),
                message,
                text(after.phase.name().as_str()),
                node,
                run_since,
                maybe_text(phase.questions.as_deref()),
                maybe_number(phase.wake_at),
                maybe_text(phase.wake_children.as_deref()),
                checksum,
                began_at,
            ];
            if before.phase.not_before() != after.phase.not_before() {
                let queue = [due_at, maybe_number(phase.not_before)];
                self.statements.execute_values(UPDATE_QUEUE, &[&key, &task, &queue])?
            } else if before.due_at() != after.due_at() {
                self.statements.execute_values(UPDATE_DUE, &[&key, &task, &[due_at]])?
            } else {
                self.statements.execute_values(UPDATE_IN_PLACE, &[&key, &task])?
            }
        };
        if rows != 1 {
            return Err(DiskError::Untrusted(format!("revision {was} of task {id} is not what the file has")));
        }
        // The progress of an earlier attempt does not count for a new one.
        if before.attempt != after.attempt && before.attempt > 0 {
            self.statements.execute(DELETE_PROGRESS, [owner, id])?;
        }
        Ok(())
    }

    fn delete_family(&mut self, root: &TaskKey) -> Result<Vec<TaskKey>, DiskError> {
        let members = self.statements.rows(FAMILY, [root.owner.as_str(), root.id.as_str()], |mut columns| {
            Ok(TaskKey { owner: root.owner.clone(), id: columns.id()? })
        })?;
        self.statements.execute(DELETE_KEY, [root.owner.as_str(), root.id.as_str()])?;
        for key in &members {
            for sql in DELETE {
                self.statements.execute(sql, [key.owner.as_str(), key.id.as_str()])?;
            }
        }
        Ok(members)
    }

    fn insert_entry(
        &mut self,
        key: &TaskKey,
        epoch: u32,
        entry: &JournalEntry,
    ) -> Result<Option<JournalEntry>, DiskError> {
        journal::insert(&mut self.statements, key, epoch, entry)
    }

    fn replace_entry(&mut self, key: &TaskKey, epoch: u32, entry: &JournalEntry) -> Result<(), DiskError> {
        journal::replace(&mut self.statements, key, epoch, entry)
    }

    fn question(&mut self, key: &TaskKey, question: &QuestionKey) -> Result<Option<(u32, JournalEntry)>, DiskError> {
        journal::question(&mut self.statements, key, question)
    }

    fn last_entry_of(&mut self, key: &TaskKey, epoch: u32, attempt: u32) -> Result<Option<Timestamp>, DiskError> {
        journal::last_of_attempt(&mut self.statements, key, epoch, attempt)
    }

    fn insert_attempt(&mut self, key: &TaskKey, attempt: &AttemptRecord) -> Result<(), DiskError> {
        journal::insert_attempt(&mut self.statements, key, attempt)
    }

    fn write_progress(&mut self, key: &TaskKey, progress: &Progress) -> Result<(), DiskError> {
        let at = time_to_sql(progress.at);
        let (owner, id) = (key.owner.as_str(), key.id.as_str());
        let params = params![owner, id, progress.done, progress.total, progress.message.as_deref(), at];
        self.statements.execute(WRITE_PROGRESS, params).map(|_| ())
    }

    fn secret(&mut self, name: &str, fresh: [u8; 32]) -> Result<[u8; 32], DiskError> {
        self.statements.execute(INSERT_SECRET, params![name, fresh])?;
        let secret = self.statements.row(SECRET, [name], |mut columns| columns.secret())?;
        secret.ok_or_else(|| DiskError::Untrusted(format!("the secret {name:?} was written and is not there")))
    }

    fn check(&mut self) -> Result<(), DiskError> {
        self.statements.execute(INSERT_CHECK, [CHECK_BYTES])?;
        self.statements.execute(DELETE_CHECK, []).map(|_| ())
    }
}

/// Every statement of the writer that looks for rows.
#[cfg(test)]
pub(crate) const LOOKUPS: &[&str] = &[
    SELECT_TASK,
    SELECT_INPUT,
    HAS_OPEN_CHILD,
    OPEN_DESCENDANTS,
    QUEUED,
    NEXT_QUEUED_OWNER,
    FAMILY,
    SETTLE,
    SETTLE_IN_QUEUE,
    journal::SELECT_QUESTION,
    journal::SELECT_POSITION,
    journal::LAST_OF_ATTEMPT,
    journal::REPLACE,
    DELETE[0],
    SELECT_KEYED_TASK,
    DELETE_KEY,
];

#[cfg(test)]
mod tests {
    use std::path::Path;

    use longhaul_store::contract;
    use longhaul_task::transition::{Create, create};
    use longhaul_task::{NodeId, Phase, Policy, Retention};
    use rusqlite::Connection;
    use rusqlite::types::Value;

    use super::*;
    use crate::SqliteOptions;
    use crate::migration::{MIGRATIONS, migrate};
    use crate::open::open_disk;

    fn connection() -> SqliteConnection {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, Path::new("memory"), MIGRATIONS).unwrap();
        SqliteConnection::new(connection)
    }

    #[test]
    fn a_dropped_transaction_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let (mut disk, reader) = open_disk(&directory.path().join("tasks.db"), &SqliteOptions::default()).unwrap();
        contract::transactions::a_dropped_transaction_leaves_nothing(&mut disk, &reader);
    }

    /// Otherwise the value of the last execution would be written into the row of another task.
    #[test]
    fn a_statement_with_an_unbound_parameter_is_refused() {
        let mut connection = connection();
        let mut statements = connection.statements();
        let too_few: &[ValueRef<'_>] = &[text("ada"), text("mine")];
        assert!(matches!(statements.execute_values(INSERT_INPUT, &[too_few]), Err(DiskError::Failed(_))));
    }

    fn running_root() -> Task {
        let new = Create {
            key: TaskKey { owner: Owner::parse("ada").unwrap(), id: TaskId::parse("mine").unwrap() },
            tool: ToolRef::new("echo", "1"),
            origin: "test".into(),
            policy: Policy::default(),
            retention: Retention::FromCreation(60_000),
            claimed_by: Some(NodeId::mint([7; 16])),
            first_fence: 0,
        };
        create(&new, Timestamp::from_ms(1_000_000))
    }

    /// The row of the only task, and its columns.
    fn row(transaction: &SqliteTransaction<'_>) -> Vec<(String, Value)> {
        let mut select = transaction.statements.connection().prepare("SELECT * FROM task").unwrap();
        let names: Vec<String> = select.column_names().map(str::to_owned).collect();
        let values = |row: &rusqlite::Row<'_>| (0..names.len()).map(|index| row.get(index)).collect();
        let values: Vec<Value> = select.query_row([], values).unwrap();
        names.into_iter().zip(values).collect()
    }

    #[test]
    fn both_statements_insert_the_same_row() {
        let mut connection = connection();
        let mut transaction = SqliteTransaction::begin(&mut connection).unwrap();
        let (task, input) = (running_root(), Json::from_text("{}"));
        let phase = PhaseColumns::of(&task.phase).unwrap();
        let columns = task_columns(&task, &phase);
        assert!(new_root(&columns).is_some());
        assert!(transaction.insert(&task, &input).unwrap());
        let short = row(&transaction);
        transaction.statements.execute("DELETE FROM task", []).unwrap();
        transaction
            .statements
            .execute_values(INSERT, &[&columns, &columns_after_phase(&task, &input, &columns)])
            .unwrap();
        assert_eq!(short, row(&transaction));
        assert_eq!(transaction.task(&task.key).unwrap(), Some(task));
    }

    #[test]
    fn an_end_with_another_change_is_refused_and_not_written_in_part() {
        let mut connection = connection();
        let mut transaction = SqliteTransaction::begin(&mut connection).unwrap();
        let before = running_root();
        transaction.insert(&before, &Json::from_text("{}")).unwrap();
        let phase = Phase::Settled { outcome: Outcome::Cancelled, at: before.updated_at, last_attempt: None };
        let after = Task { phase, revision: before.revision + 1, attempt: before.attempt + 1, ..before.clone() };
        assert!(matches!(transaction.update(&before, &after), Err(DiskError::Failed(_))));
        assert_eq!(transaction.task(&before.key).unwrap(), Some(before));
    }
}
