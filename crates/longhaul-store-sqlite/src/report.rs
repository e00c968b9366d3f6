//! Reading everything in a store, to report what is damaged.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use longhaul_store::{Damage, OpenError, StoreReport};
use longhaul_task::{Json, Outcome, Task, TaskId, TaskKey};
use rusqlite::{Connection, OptionalExtension, Row};
use serde::de::IgnoredAny;

use crate::error::sqlite_error;
use crate::journal;
use crate::open::connect_read_only;
use crate::row::{Columns, SELECT_INPUT, select_task};
use crate::texts::Texts;

/// The most problems of the file's structure that are reported. One wrong page can cause a problem for each of its rows.
const STRUCTURE_PROBLEMS_MAX: u32 = 100;

const TASKS: &str = select_task!("ORDER BY task.owner, task.id");
const TASKS_BACKWARDS: &str = select_task!("ORDER BY task.owner DESC, task.id DESC");
const KEYS: &str = "SELECT owner, id, key, digest, checksum FROM idempotency";
const SECRETS: &str = "SELECT name, value FROM secret";
/// Where else the key of a task is, in words and in SQL.
const TRACES: [(&str, &str); 7] = [
    ("its arguments", "SELECT owner, id FROM input"),
    ("its outcome", "SELECT owner, id FROM outcome"),
    ("its progress", "SELECT owner, id FROM progress"),
    ("its journal", "SELECT DISTINCT owner, id FROM journal"),
    ("its idempotency key", "SELECT owner, id FROM idempotency"),
    ("an index", "SELECT owner, id FROM task INDEXED BY task_due WHERE due_at IS NOT NULL"),
    ("an index", "SELECT owner, id FROM task INDEXED BY task_open WHERE settled_at IS NULL"),
];

/// Reads all of a store, while a server uses it or not: the structure of the file, every row as this program reads it,
/// and what the tables say about each other. All of it shows the store at one moment.
pub(crate) fn report(path: &Path) -> Result<StoreReport, OpenError> {
    let sqlite = |error: rusqlite::Error| sqlite_error(path, &error);
    let (connection, _) = connect_read_only(path)?;
    connection.execute_batch("BEGIN").map_err(sqlite)?;
    let mut inspection = Inspection { connection: &connection, damage: Vec::new(), tasks: BTreeMap::new() };
    inspection.structure();
    inspection.all_tasks();
    inspection.details();
    inspection.keys();
    inspection.families();
    inspection.traces();
    inspection.secrets();
    let tasks = inspection.tasks.len() as u64;
    Ok(StoreReport::new(tasks, inspection.damage))
}

struct Inspection<'a> {
    connection: &'a Connection,
    damage: Vec<Damage>,
    /// Every task that has a row; `None` if the row cannot be read.
    tasks: BTreeMap<TaskKey, Option<Relations>>,
}

/// What a task says about other tasks.
struct Relations {
    parent: Option<TaskId>,
    children: u32,
}

impl Inspection<'_> {
    fn add(&mut self, task: Option<&TaskKey>, problem: impl Into<String>) {
        self.damage.push(Damage::new(task.cloned(), problem.into()));
    }

    fn structure(&mut self) {
        let sql = format!("PRAGMA integrity_check({STRUCTURE_PROBLEMS_MAX})");
        let found = self.connection.prepare(&sql).and_then(|mut statement| {
            let lines = statement.query_map([], |row| row.get::<_, String>(0))?;
            lines.collect::<Result<Vec<_>, _>>()
        });
        match found {
            Ok(lines) if lines == ["ok"] => {}
            Ok(lines) => lines.iter().flat_map(|text| text.lines()).for_each(|line| self.add(None, line)),
            Err(error) => self.add(None, error.to_string()),
        }
    }

    /// Reads all rows from the first to the last. If a page cannot be read, reads the rest from the last to the first.
    fn all_tasks(&mut self) {
        if let Err(error) = self.tasks_in_order(TASKS) {
            self.add(None, format!("not all tasks can be read: {error}"));
            // The second error is about the same place.
            let _ = self.tasks_in_order(TASKS_BACKWARDS);
        }
    }

    fn tasks_in_order(&mut self, sql: &str) -> rusqlite::Result<()> {
        let mut statement = self.connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        let mut texts = Texts::default();
        while let Some(row) = rows.next()? {
            let Ok(key) = Columns::of(row, &mut texts).key() else {
                self.add(None, format!("a task has a key that is not valid: {}", raw_key(row)));
                continue;
            };
            if self.tasks.contains_key(&key) {
                // From the other direction: everything from here on has been read.
                return Ok(());
            }
            let relations = match Columns::of(row, &mut texts).snapshot(None) {
                Ok(found) => {
                    self.outcome(&found.task);
                    Some(Relations { parent: found.task.family.parent.clone(), children: found.task.family.children })
                }
                Err(error) => {
                    self.add(Some(&key), error.to_string());
                    None
                }
            };
            self.tasks.insert(key, relations);
        }
        Ok(())
    }

    fn outcome(&mut self, task: &Task) {
        let body = match task.phase.outcome() {
            Some(Outcome::Result { body, .. }) => Some(body),
            Some(Outcome::Error(error)) => error.data.as_ref(),
            Some(Outcome::Cancelled) | None => None,
        };
        if body.is_some_and(|body| !is_json(body)) {
            self.add(Some(&task.key), "its outcome is not JSON");
        }
    }

    /// The arguments and the journal of each task.
    fn details(&mut self) {
        let keys: Vec<TaskKey> = self.tasks.keys().cloned().collect();
        let mut texts = Texts::default();
        for key in keys {
            let params = [key.owner.as_str(), key.id.as_str()];
            let input = self.connection.prepare_cached(SELECT_INPUT).and_then(|mut statement| {
                statement.query_row(params, |row| Columns::of(row, &mut texts).input()).optional()
            });
            match input {
                Ok(Some(input)) if is_json(&input) => {}
                Ok(Some(_)) => self.add(Some(&key), "its arguments are not JSON"),
                Ok(None) => self.add(Some(&key), "its arguments cannot be found"),
                Err(error) => self.add(Some(&key), format!("its arguments cannot be read: {error}")),
            }
            let entries = self.connection.prepare_cached(journal::SELECT_ALL).and_then(|mut statement| {
                let mut entries = statement.query_map(params, |row| Columns::of(row, &mut texts).entry())?;
                entries.try_for_each(|entry| entry.map(|_| ()))
            });
            if let Err(error) = entries {
                self.add(Some(&key), format!("its journal cannot be read: {error}"));
            }
        }
    }

    fn keys(&mut self) {
        let mut texts = Texts::default();
        let mut damage = Vec::new();
        let read = self.connection.prepare(KEYS).and_then(|mut statement| {
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                if let Err(error) = Columns::of(row, &mut texts).keyed_task() {
                    let task = Columns::of(row, &mut texts).key().ok();
                    damage.push(Damage::new(task, format!("its idempotency key cannot be read: {error}")));
                }
            }
            Ok(())
        });
        self.damage.append(&mut damage);
        if let Err(error) = read {
            self.add(None, format!("not all idempotency keys can be read: {error}"));
        }
    }

    fn families(&mut self) {
        let mut counted: BTreeMap<TaskKey, u32> = BTreeMap::new();
        let mut damage = Vec::new();
        for (key, relations) in &self.tasks {
            let Some(parent) = relations.as_ref().and_then(|relations| relations.parent.clone()) else { continue };
            let parent = TaskKey { owner: key.owner.clone(), id: parent };
            if !self.tasks.contains_key(&parent) {
                damage.push(Damage::new(Some(key.clone()), format!("its parent {} is missing", parent.id)));
            }
            *counted.entry(parent).or_default() += 1;
        }
        for (key, relations) in &self.tasks {
            let Some(relations) = relations else { continue };
            let found = counted.get(key).copied().unwrap_or(0);
            if found != relations.children {
                let problem = format!("it has {found} children instead of {}", relations.children);
                damage.push(Damage::new(Some(key.clone()), problem));
            }
        }
        self.damage.append(&mut damage);
    }

    /// Tasks whose row is missing, and of which something else is left.
    fn traces(&mut self) {
        let mut missing = BTreeSet::new();
        for (what, sql) in TRACES {
            let mut texts = Texts::default();
            let keys = self.connection.prepare(sql).and_then(|mut statement| {
                let keys = statement.query_map([], |row| Ok(Columns::of(row, &mut texts).key().ok()))?;
                keys.collect::<Result<Vec<_>, _>>()
            });
            match keys {
                Ok(keys) => {
                    for key in keys.into_iter().flatten().filter(|key| !self.tasks.contains_key(key)) {
                        missing.insert((key, what));
                    }
                }
                Err(error) => self.add(None, format!("{what} of all tasks cannot be read: {error}")),
            }
        }
        for (key, what) in missing {
            self.add(Some(&key), format!("it is lost: only {what} is left"));
        }
    }

    fn secrets(&mut self) {
        let secrets = self.connection.prepare(SECRETS).and_then(|mut statement| {
            let secrets = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, [u8; 32]>(1))))?;
            secrets.collect::<Result<Vec<_>, _>>()
        });
        match secrets {
            Ok(secrets) => {
                for (name, _) in secrets.iter().filter(|(_, value)| value.is_err()) {
                    self.add(None, format!("the secret {name:?} is not valid"));
                }
            }
            Err(error) => self.add(None, format!("the secrets cannot be read: {error}")),
        }
    }
}

fn is_json(text: &Json) -> bool {
    serde_json::from_str::<IgnoredAny>(text.as_str()).is_ok()
}

/// The key of a task as it is in the file.
fn raw_key(row: &Row<'_>) -> String {
    let text = |index| match row.get_ref(index).map(|value| value.as_bytes().map(String::from_utf8_lossy)) {
        Ok(Ok(text)) => text.into_owned(),
        _ => "?".to_owned(),
    };
    format!("{:?} of {:?}", text(1), text(0))
}
