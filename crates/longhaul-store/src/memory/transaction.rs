//! The transactions of the memory backend.

use std::sync::Arc;

use longhaul_task::{
    AttemptRecord, ChildRange, JournalEntry, JournalPosition, Json, Owner, Progress, QuestionKey, Task, TaskId,
    TaskKey, Timestamp, ToolRef,
};
use parking_lot::RwLockWriteGuard;

use super::{MemoryJournal, MemoryRow, Tables, crashed, earliest_times};
use crate::embedded::{DiskError, Transaction};
use crate::{CrashTrigger, IdempotencyKey, KeyedTask};

/// The open transaction of the writer, which holds the lock of the tables.
pub(super) struct MemoryTransaction<'a> {
    tables: RwLockWriteGuard<'a, Tables>,
    /// How to revert the writes, the newest last. Empty once they are committed.
    undo: Vec<Undo>,
    /// The written journal entries, if there is a crash trigger.
    entries: Vec<(TaskKey, JournalEntry)>,
    crash_trigger: Option<&'a CrashTrigger>,
}

/// How to revert one write.
enum Undo {
    /// Put the earlier row back; `None` if there was none.
    Row(TaskKey, Option<Box<MemoryRow>>),
    /// Put the earlier entry back; `None` if there was none.
    Entry(TaskKey, (u32, JournalPosition), Option<Box<JournalEntry>>),
    /// Put the journal of a deleted task back.
    DeletedJournal(TaskKey, MemoryJournal),
    /// Remove the secret of this name.
    Secret(String),
}

impl<'a> MemoryTransaction<'a> {
    pub(super) fn new(tables: RwLockWriteGuard<'a, Tables>, crash_trigger: Option<&'a CrashTrigger>) -> Self {
        Self { tables, undo: Vec::new(), entries: Vec::new(), crash_trigger }
    }

    /// Keeps an entry for the crash trigger, if there is one.
    fn note_entry(&mut self, key: &TaskKey, entry: &JournalEntry) {
        if self.crash_trigger.is_some() {
            self.entries.push((key.clone(), entry.clone()));
        }
    }

    fn put(&mut self, key: &TaskKey, row: Option<MemoryRow>) {
        let before = self.tables.put(key, row);
        self.undo.push(Undo::Row(key.clone(), before.map(Box::new)));
    }

    fn change(&mut self, key: &TaskKey, change: impl FnOnce(&mut MemoryRow)) -> Result<(), DiskError> {
        let mut row = self.tables.rows.get(key).cloned().ok_or_else(|| no_row(key))?;
        change(&mut row);
        self.put(key, Some(row));
        Ok(())
    }
}

/// Reverts the writes of a transaction that was not committed.
impl Drop for MemoryTransaction<'_> {
    fn drop(&mut self) {
        let tables = &mut *self.tables;
        for undo in self.undo.drain(..).rev() {
            match undo {
                Undo::Row(key, before) => {
                    tables.put(&key, before.map(|row| *row));
                }
                Undo::Entry(key, at, Some(before)) => {
                    tables.journals.entry(key).or_default().insert(at, *before);
                }
                Undo::Entry(key, at, None) => {
                    tables.journals.entry(key).or_default().remove(&at);
                }
                Undo::DeletedJournal(key, journal) => {
                    tables.journals.insert(key, journal);
                }
                Undo::Secret(name) => {
                    tables.secrets.remove(&name);
                }
            }
        }
    }
}

impl Transaction for MemoryTransaction<'_> {
    fn commit(mut self: Box<Self>) -> Result<(), DiskError> {
        self.undo.clear();
        let crashes = self.crash_trigger.is_some_and(|trigger| trigger.committed(&mut self.entries));
        // The writes stay, and their caller does not learn of it, as after a kill.
        if crashes { Err(crashed()) } else { Ok(()) }
    }

    fn task(&mut self, key: &TaskKey) -> Result<Option<Task>, DiskError> {
        Ok(self.tables.rows.get(key).map(|row| row.task.clone()))
    }

    fn input(&mut self, key: &TaskKey) -> Result<Option<Json>, DiskError> {
        Ok(self.tables.rows.get(key).map(|row| row.input.clone()))
    }

    fn has_open_child(&mut self, key: &TaskKey, range: ChildRange, except: Option<u32>) -> Result<bool, DiskError> {
        let tables = &self.tables;
        let mut ordinals =
            tables.open_children.get(key).into_iter().flat_map(|open| open.range(range.first..=range.last));
        Ok(ordinals.any(|ordinal| Some(*ordinal) != except))
    }

    fn open_descendants(&mut self, key: &TaskKey) -> Result<Vec<Task>, DiskError> {
        let tables = &self.tables;
        let mut descendants = Vec::new();
        let mut parents = vec![key.clone()];
        while let Some(parent) = parents.pop() {
            for task in tables.open_children(&parent) {
                parents.push(task.key.clone());
                descendants.push(task.clone());
            }
        }
        Ok(descendants)
    }

    fn queued(&mut self, tool: &ToolRef, owner: &Owner, limit: usize) -> Result<Vec<(Timestamp, TaskId)>, DiskError> {
        let tasks = self.tables.queue.get(tool).and_then(|owners| owners.get(owner)).into_iter().flatten();
        Ok(tasks.take(limit).map(|(not_before, _, id)| (*not_before, id.clone())).collect())
    }

    fn queued_owners(&mut self, tool: &ToolRef) -> Result<Vec<(Owner, Timestamp)>, DiskError> {
        Ok(self.tables.queue.get(tool).into_iter().flat_map(earliest_times).collect())
    }

    fn keyed_task(&mut self, owner: &Owner, key: &str) -> Result<Option<KeyedTask>, DiskError> {
        Ok(self.tables.keyed_task(owner, key))
    }

    fn insert(&mut self, task: &Task, input: &Json) -> Result<bool, DiskError> {
        if self.tables.rows.contains_key(&task.key) {
            return Ok(false);
        }
        let row = MemoryRow {
            task: task.clone(),
            input: input.clone(),
            idempotency: None,
            progress: None,
            attempts: Vec::new(),
        };
        self.put(&task.key, Some(row));
        Ok(true)
    }

    fn insert_key(&mut self, task: &TaskKey, key: &IdempotencyKey) -> Result<(), DiskError> {
        self.change(task, |row| row.idempotency = Some(key.clone()))
    }

    fn update(&mut self, _before: &Task, after: &Task) -> Result<(), DiskError> {
        self.change(&after.key, |row| {
            if row.task.attempt != after.attempt {
                row.progress = None;
            }
            row.task = after.clone();
        })
    }

    fn delete_family(&mut self, root: &TaskKey) -> Result<Vec<TaskKey>, DiskError> {
        let members: Vec<TaskKey> = self
            .tables
            .rows
            .values()
            .filter(|row| row.task.key.owner == root.owner && row.task.family.root == root.id)
            .map(|row| row.task.key.clone())
            .collect();
        for key in &members {
            self.put(key, None);
            if let Some(journal) = self.tables.journals.remove(key) {
                self.undo.push(Undo::DeletedJournal(key.clone(), journal));
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
        let at = (epoch, entry.position.clone());
        let existing = self.tables.journals.get(key).and_then(|journal| journal.get(&at)).cloned();
        if existing.is_none() {
            self.replace_entry(key, epoch, entry)?;
        }
        Ok(existing)
    }

    fn replace_entry(&mut self, key: &TaskKey, epoch: u32, entry: &JournalEntry) -> Result<(), DiskError> {
        let (tables, at) = (&mut *self.tables, (epoch, entry.position.clone()));
        if !tables.rows.contains_key(key) {
            return Err(no_row(key));
        }
        let before = tables.journals.entry(key.clone()).or_default().insert(at.clone(), entry.clone());
        self.undo.push(Undo::Entry(key.clone(), at, before.map(Box::new)));
        self.note_entry(key, entry);
        Ok(())
    }

    fn question(&mut self, key: &TaskKey, question: &QuestionKey) -> Result<Option<(u32, JournalEntry)>, DiskError> {
        Ok(self.tables.question(key, question))
    }

    fn last_entry_of(&mut self, key: &TaskKey, epoch: u32, attempt: u32) -> Result<Option<Timestamp>, DiskError> {
        let journal = self.tables.journals.get(key).into_iter().flatten();
        let entries = journal.filter(|((of, _), entry)| *of == epoch && entry.attempt == attempt);
        Ok(entries.map(|(_, entry)| entry.at).max())
    }

    fn insert_attempt(&mut self, key: &TaskKey, attempt: &AttemptRecord) -> Result<(), DiskError> {
        self.change(key, |row| row.attempts.push(attempt.clone()))
    }

    fn write_progress(&mut self, key: &TaskKey, progress: &Progress) -> Result<(), DiskError> {
        self.change(key, |row| row.progress = Some(Arc::new(progress.clone())))
    }

    fn secret(&mut self, name: &str, fresh: [u8; 32]) -> Result<[u8; 32], DiskError> {
        if let Some(stored) = self.tables.secrets.get(name) {
            return Ok(*stored);
        }
        self.tables.secrets.insert(name.to_owned(), fresh);
        self.undo.push(Undo::Secret(name.to_owned()));
        Ok(fresh)
    }
}

fn no_row(key: &TaskKey) -> DiskError {
    DiskError::Failed(format!("no row {key:?}"))
}
