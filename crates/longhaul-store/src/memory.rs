//! The backend in memory: for tests, and for tasks that need not survive the process.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use longhaul_task::{
    AttemptRecord, ChildRange, JournalEntry, JournalPosition, Json, NodeId, Owner, Progress, QuestionKey, Task, TaskId,
    TaskKey, Timestamp, ToolRef,
};
use parking_lot::lock_api::ArcRwLockWriteGuard;
use parking_lot::{RawRwLock, RwLock};

use crate::embedded::{Disk, DiskError, Embedded, EmbeddedLimits, Reader};
use crate::{
    Clock, CrashTrigger, HeldAttempt, IdempotencyKey, KeyedTask, ListQuery, Snapshot, TaskCount, TaskHistory, TaskPage,
};

/// Opens an empty store in memory.
///
/// ```
/// use longhaul_store::{Store, SystemClock, memory};
///
/// let store = memory::open(SystemClock).unwrap();
/// # let _: &dyn Store = &store;
/// ```
pub fn open(clock: impl Clock) -> std::io::Result<Embedded> {
    open_with(clock, &EmbeddedLimits::default())
}

/// Opens an empty store in memory with these limits.
pub fn open_with(clock: impl Clock, limits: &EmbeddedLimits) -> std::io::Result<Embedded> {
    let disk = MemoryDisk::default();
    let reader = disk.reader();
    Embedded::start(disk, reader, clock, limits)
}

/// The tables of a store in memory. The writer holds their lock from `begin` to the end of its transaction.
#[derive(Default)]
pub struct MemoryDisk {
    tables: Arc<RwLock<Tables>>,
    transaction: Option<ArcRwLockWriteGuard<RawRwLock, Tables>>,
    /// How to revert the writes of the open transaction, the newest last.
    undo: Vec<Undo>,
    /// The journal entries of the open transaction, if there is a crash trigger.
    entries: Vec<(TaskKey, JournalEntry)>,
    crash_trigger: Option<Arc<CrashTrigger>>,
}

/// Reads the committed tables.
#[derive(Clone)]
pub struct MemoryReader(Arc<RwLock<Tables>>);

#[derive(Default)]
struct Tables {
    rows: BTreeMap<TaskKey, MemoryRow>,
    /// Apart from the rows, because a change of a row copies it, and a journal can be long.
    journals: BTreeMap<TaskKey, MemoryJournal>,
    queue: BTreeMap<ToolRef, QueueByOwner>,
    due: BTreeSet<(Timestamp, TaskKey)>,
    /// The node and the fence of the attempt that holds each task.
    held: BTreeMap<TaskKey, (NodeId, u64)>,
    /// By parent and ordinal of the child.
    children: BTreeMap<(TaskKey, u32), TaskId>,
    /// The ordinals of the open children of each parent.
    open_children: BTreeMap<TaskKey, BTreeSet<u32>>,
    /// By owner and idempotency key.
    keyed: BTreeMap<(Owner, Arc<str>), TaskId>,
    secrets: HashMap<String, [u8; 32]>,
}

/// The queued tasks of each owner in the order in which they are claimed: by the earliest time at which they may be
/// claimed, the time of creation and the ID.
type QueueByOwner = BTreeMap<Owner, BTreeSet<(Timestamp, Timestamp, TaskId)>>;

/// By epoch and position.
type MemoryJournal = BTreeMap<(u32, JournalPosition), JournalEntry>;

#[derive(Clone)]
struct MemoryRow {
    task: Task,
    input: Json,
    idempotency: Option<IdempotencyKey>,
    progress: Option<Arc<Progress>>,
    attempts: Vec<AttemptRecord>,
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

impl Tables {
    /// Replaces a row and its index entries. Every change of a row goes through this function.
    fn put(&mut self, key: &TaskKey, row: Option<MemoryRow>) -> Option<MemoryRow> {
        let before = self.rows.remove(key);
        if let Some(row) = &before {
            self.unindex(&row.task);
            if let Some(keyed) = &row.idempotency {
                self.keyed.remove(&(key.owner.clone(), Arc::clone(&keyed.key)));
            }
        }
        if let Some(row) = row {
            self.index(&row.task);
            if let Some(keyed) = &row.idempotency {
                self.keyed.insert((key.owner.clone(), Arc::clone(&keyed.key)), key.id.clone());
            }
            self.rows.insert(key.clone(), row);
        }
        before
    }

    fn index(&mut self, task: &Task) {
        if let Some(not_before) = task.phase.not_before() {
            let owners = self.queue.entry(task.tool.clone()).or_default();
            let tasks = owners.entry(task.key.owner.clone()).or_default();
            tasks.insert((not_before, task.created_at, task.key.id.clone()));
        }
        if let Some(due_at) = task.due_at() {
            self.due.insert((due_at, task.key.clone()));
        }
        if let Some(attempt) = task.phase.active_attempt() {
            self.held.insert(task.key.clone(), (attempt.node, task.fence));
        }
        if let Some(parent) = parent_key(task) {
            if !task.is_settled() {
                self.open_children.entry(parent.clone()).or_default().insert(task.family.ordinal);
            }
            self.children.insert((parent, task.family.ordinal), task.key.id.clone());
        }
    }

    fn unindex(&mut self, task: &Task) {
        if let Some(not_before) = task.phase.not_before()
            && let Some(owners) = self.queue.get_mut(&task.tool)
            && let Some(tasks) = owners.get_mut(&task.key.owner)
        {
            tasks.remove(&(not_before, task.created_at, task.key.id.clone()));
            if tasks.is_empty() {
                owners.remove(&task.key.owner);
            }
        }
        if let Some(due_at) = task.due_at() {
            self.due.remove(&(due_at, task.key.clone()));
        }
        self.held.remove(&task.key);
        if let Some(parent) = parent_key(task) {
            if let Some(open) = self.open_children.get_mut(&parent) {
                open.remove(&task.family.ordinal);
                if open.is_empty() {
                    self.open_children.remove(&parent);
                }
            }
            self.children.remove(&(parent, task.family.ordinal));
        }
    }

    fn children_of(&self, key: &TaskKey) -> impl Iterator<Item = &TaskId> {
        self.children.range((key.clone(), 0)..=(key.clone(), u32::MAX)).map(|(_, id)| id)
    }

    fn open_children(&self, key: &TaskKey) -> Vec<&Task> {
        self.children_of(key)
            .filter_map(|id| self.rows.get(&TaskKey { owner: key.owner.clone(), id: id.clone() }))
            .map(|row| &row.task)
            .filter(|task| !task.is_settled())
            .collect()
    }

    fn keyed_task(&self, owner: &Owner, key: &str) -> Option<KeyedTask> {
        let id = self.keyed.get(&(owner.clone(), key.into()))?;
        let row = self.rows.get(&TaskKey { owner: owner.clone(), id: id.clone() })?;
        Some(KeyedTask { id: id.clone(), digest: row.idempotency.as_ref()?.digest })
    }

    fn question(&self, key: &TaskKey, question: &QuestionKey) -> Option<(u32, JournalEntry)> {
        let mut journal = self.journals.get(key)?.iter();
        let found = journal.find(|(_, entry)| entry.question.as_ref() == Some(question));
        found.map(|((epoch, _), entry)| (*epoch, entry.clone()))
    }

    fn snapshot(row: &MemoryRow) -> Snapshot {
        Snapshot { task: Arc::new(row.task.clone()), progress: row.progress.clone() }
    }
}

/// Each owner, with the time from which its first queued task can be claimed.
fn earliest_times(owners: &QueueByOwner) -> impl Iterator<Item = (Owner, Timestamp)> {
    owners.iter().filter_map(|(owner, tasks)| Some((owner.clone(), tasks.first()?.0)))
}

fn parent_key(task: &Task) -> Option<TaskKey> {
    task.family.parent.clone().map(|id| TaskKey { owner: task.key.owner.clone(), id })
}

impl MemoryDisk {
    /// A disk on the same tables, for a store that is started after this one has crashed or been closed.
    pub fn same_tables(&self) -> Self {
        let tables = Arc::clone(&self.tables);
        Self { tables, transaction: None, undo: Vec::new(), entries: Vec::new(), crash_trigger: None }
    }

    /// Has the trigger decide when this disk crashes.
    #[must_use]
    pub fn with_crash_trigger(mut self, crash_trigger: Arc<CrashTrigger>) -> Self {
        self.crash_trigger = Some(crash_trigger);
        self
    }

    /// Keeps an entry for the crash trigger, if there is one.
    fn note_entry(&mut self, key: &TaskKey, entry: &JournalEntry) {
        if self.crash_trigger.is_some() {
            self.entries.push((key.clone(), entry.clone()));
        }
    }

    pub fn reader(&self) -> MemoryReader {
        MemoryReader(Arc::clone(&self.tables))
    }

    fn tables(&mut self) -> Result<&mut Tables, DiskError> {
        self.transaction.as_deref_mut().ok_or_else(|| DiskError::Failed("no transaction is open".into()))
    }

    fn put(&mut self, key: &TaskKey, row: Option<MemoryRow>) -> Result<(), DiskError> {
        let before = self.tables()?.put(key, row);
        self.undo.push(Undo::Row(key.clone(), before.map(Box::new)));
        Ok(())
    }

    fn change(&mut self, key: &TaskKey, change: impl FnOnce(&mut MemoryRow)) -> Result<(), DiskError> {
        let mut row = self.tables()?.rows.get(key).cloned().ok_or_else(|| no_row(key))?;
        change(&mut row);
        self.put(key, Some(row))
    }
}

fn no_row(key: &TaskKey) -> DiskError {
    DiskError::Failed(format!("no row {key:?}"))
}

/// The error of a disk that has crashed. To its callers the store is unavailable for a while: they try again until their
/// process has ended.
fn crashed() -> DiskError {
    DiskError::Failed("the process has crashed".into())
}

/// Rolls an open transaction back.
impl Drop for MemoryDisk {
    fn drop(&mut self) {
        self.rollback();
    }
}

impl Disk for MemoryDisk {
    fn begin(&mut self) -> Result<(), DiskError> {
        let transaction = self.tables.write_arc();
        // Checked while the lock is held, so that a disk that is opened after the crash sees every commit of this one.
        if self.crash_trigger.as_ref().is_some_and(|crash_trigger| crash_trigger.has_crashed()) {
            return Err(crashed());
        }
        self.transaction = Some(transaction);
        Ok(())
    }

    fn commit(&mut self) -> Result<(), DiskError> {
        self.undo.clear();
        let crashes =
            self.crash_trigger.as_ref().is_some_and(|crash_trigger| crash_trigger.committed(&mut self.entries));
        self.transaction = None;
        if crashes { Err(crashed()) } else { Ok(()) }
    }

    fn rollback(&mut self) {
        self.entries.clear();
        if let Some(mut tables) = self.transaction.take() {
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

    fn task(&mut self, key: &TaskKey) -> Result<Option<Task>, DiskError> {
        Ok(self.tables()?.rows.get(key).map(|row| row.task.clone()))
    }

    fn input(&mut self, key: &TaskKey) -> Result<Option<Json>, DiskError> {
        Ok(self.tables()?.rows.get(key).map(|row| row.input.clone()))
    }

    fn has_open_child(&mut self, key: &TaskKey, range: ChildRange, except: Option<u32>) -> Result<bool, DiskError> {
        let tables = self.tables()?;
        let mut ordinals =
            tables.open_children.get(key).into_iter().flat_map(|open| open.range(range.first..=range.last));
        Ok(ordinals.any(|ordinal| Some(*ordinal) != except))
    }

    fn open_descendants(&mut self, key: &TaskKey) -> Result<Vec<Task>, DiskError> {
        let tables = self.tables()?;
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
        let tasks = self.tables()?.queue.get(tool).and_then(|owners| owners.get(owner)).into_iter().flatten();
        Ok(tasks.take(limit).map(|(not_before, _, id)| (*not_before, id.clone())).collect())
    }

    fn queued_owners(&mut self, tool: &ToolRef) -> Result<Vec<(Owner, Timestamp)>, DiskError> {
        Ok(self.tables()?.queue.get(tool).into_iter().flat_map(earliest_times).collect())
    }

    fn keyed_task(&mut self, owner: &Owner, key: &str) -> Result<Option<KeyedTask>, DiskError> {
        Ok(self.tables()?.keyed_task(owner, key))
    }

    fn insert(&mut self, task: &Task, input: &Json) -> Result<bool, DiskError> {
        if self.tables()?.rows.contains_key(&task.key) {
            return Ok(false);
        }
        let row = MemoryRow {
            task: task.clone(),
            input: input.clone(),
            idempotency: None,
            progress: None,
            attempts: Vec::new(),
        };
        self.put(&task.key, Some(row))?;
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
            .tables()?
            .rows
            .values()
            .filter(|row| row.task.key.owner == root.owner && row.task.family.root == root.id)
            .map(|row| row.task.key.clone())
            .collect();
        for key in &members {
            self.put(key, None)?;
            if let Some(journal) = self.tables()?.journals.remove(key) {
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
        let existing = self.tables()?.journals.get(key).and_then(|journal| journal.get(&at)).cloned();
        if existing.is_none() {
            self.replace_entry(key, epoch, entry)?;
        }
        Ok(existing)
    }

    fn replace_entry(&mut self, key: &TaskKey, epoch: u32, entry: &JournalEntry) -> Result<(), DiskError> {
        let (tables, at) = (self.tables()?, (epoch, entry.position.clone()));
        if !tables.rows.contains_key(key) {
            return Err(no_row(key));
        }
        let before = tables.journals.entry(key.clone()).or_default().insert(at.clone(), entry.clone());
        self.undo.push(Undo::Entry(key.clone(), at, before.map(Box::new)));
        self.note_entry(key, entry);
        Ok(())
    }

    fn question(&mut self, key: &TaskKey, question: &QuestionKey) -> Result<Option<(u32, JournalEntry)>, DiskError> {
        Ok(self.tables()?.question(key, question))
    }

    fn last_entry_of(&mut self, key: &TaskKey, epoch: u32, attempt: u32) -> Result<Option<Timestamp>, DiskError> {
        let journal = self.tables()?.journals.get(key).into_iter().flatten();
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
        if let Some(stored) = self.tables()?.secrets.get(name) {
            return Ok(*stored);
        }
        self.tables()?.secrets.insert(name.to_owned(), fresh);
        self.undo.push(Undo::Secret(name.to_owned()));
        Ok(fresh)
    }
}

impl Reader for MemoryReader {
    fn read(&self, key: &TaskKey) -> Result<Option<Snapshot>, DiskError> {
        Ok(self.0.read().rows.get(key).map(Tables::snapshot))
    }

    fn keyed_task(&self, owner: &Owner, key: &str) -> Result<Option<KeyedTask>, DiskError> {
        Ok(self.0.read().keyed_task(owner, key))
    }

    fn list(&self, query: &ListQuery) -> Result<TaskPage, DiskError> {
        let tables = self.0.read();
        let mut tasks: Vec<Snapshot> = tables
            .rows
            .iter()
            .rev()
            .filter(|(key, _)| query.owner.as_ref().is_none_or(|owner| key.owner == *owner))
            .skip_while(|(key, _)| query.after.as_ref().is_some_and(|after| *key >= after))
            .take(query.limit.saturating_add(1))
            .map(|(_, row)| Tables::snapshot(row))
            .collect();
        let has_more = tasks.len() > query.limit;
        tasks.truncate(query.limit);
        Ok(TaskPage { tasks, has_more })
    }

    fn children(&self, key: &TaskKey) -> Result<Vec<TaskId>, DiskError> {
        Ok(self.0.read().children_of(key).cloned().collect())
    }

    fn asking_child(&self, key: &TaskKey) -> Result<Option<TaskId>, DiskError> {
        let tables = self.0.read();
        let asking = tables.open_children(key).into_iter().find(|child| child.phase.questions().is_some());
        Ok(asking.map(|child| child.key.id.clone()))
    }

    fn journal(&self, key: &TaskKey, epoch: u32) -> Result<Vec<JournalEntry>, DiskError> {
        let tables = self.0.read();
        let all = tables.journals.get(key).into_iter().flatten();
        Ok(all.filter(|((entry_epoch, _), _)| *entry_epoch == epoch).map(|(_, entry)| entry.clone()).collect())
    }

    fn question(&self, key: &TaskKey, question: &QuestionKey) -> Result<Option<JournalEntry>, DiskError> {
        Ok(self.0.read().question(key, question).map(|(_, entry)| entry))
    }

    fn history(&self, key: &TaskKey) -> Result<TaskHistory, DiskError> {
        let tables = self.0.read();
        let Some(row) = tables.rows.get(key) else { return Ok(TaskHistory::default()) };
        let entries = tables.journals.get(key).into_iter().flat_map(BTreeMap::values).cloned().collect();
        Ok(TaskHistory { attempts: row.attempts.clone(), entries })
    }

    fn due(&self, now: Timestamp, limit: usize) -> Result<(Vec<TaskKey>, Option<Timestamp>), DiskError> {
        let tables = self.0.read();
        let keys: Vec<TaskKey> =
            tables.due.iter().take_while(|(at, _)| *at <= now).take(limit).map(|(_, key)| key.clone()).collect();
        let next = tables.due.iter().nth(keys.len()).map(|(at, _)| *at);
        Ok((keys, next))
    }

    fn began_after(&self, now: Timestamp, limit: usize) -> Result<Vec<TaskKey>, DiskError> {
        let tables = self.0.read();
        let tasks = tables.rows.values().map(|row| &row.task);
        let ahead = tasks.filter(|task| task.phase.since().is_some_and(|since| since > now));
        Ok(ahead.take(limit).map(|task| task.key.clone()).collect())
    }

    fn queued_tools(&self) -> Result<Vec<(ToolRef, Timestamp)>, DiskError> {
        let tables = self.0.read();
        let earliest = |owners| earliest_times(owners).map(|(_, not_before)| not_before).min();
        let tools = tables.queue.iter().filter_map(|(tool, owners)| Some((tool.clone(), earliest(owners)?)));
        Ok(tools.collect())
    }

    fn held(&self, after: Option<&TaskKey>, limit: usize) -> Result<Vec<HeldAttempt>, DiskError> {
        let tables = self.0.read();
        let later = tables.held.iter().filter(|(key, _)| after.is_none_or(|after| *key > after));
        Ok(later
            .take(limit)
            .map(|(key, (node, fence))| HeldAttempt { key: key.clone(), node: *node, fence: *fence })
            .collect())
    }

    fn count_open_tasks(&self) -> Result<Vec<TaskCount>, DiskError> {
        let tables = self.0.read();
        let mut counts = HashMap::new();
        for task in tables.rows.values().map(|row| &row.task).filter(|task| !task.is_settled()) {
            let (owner, tool, phase) = (task.key.owner.clone(), task.tool.clone(), task.phase.name());
            let count = counts.entry((owner.clone(), tool.clone(), phase)).or_insert(TaskCount {
                owner,
                tool,
                phase,
                tasks: 0,
                queued: 0,
            });
            count.tasks += 1;
            count.queued += u64::from(task.phase.not_before().is_some());
        }
        Ok(counts.into_values().collect())
    }
}
