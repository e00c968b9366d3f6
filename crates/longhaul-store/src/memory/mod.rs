//! The backend in memory: for tests, and for tasks that need not survive the process.

mod transaction;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use longhaul_task::{
    AttemptRecord, JournalEntry, JournalPosition, Json, NodeId, Owner, Progress, QuestionKey, Task, TaskId, TaskKey,
    Timestamp, ToolRef,
};
use parking_lot::RwLock;

use self::transaction::MemoryTransaction;
use crate::embedded::{Disk, DiskError, Embedded, EmbeddedLimits, Reader, Transaction};
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

/// The tables of a store in memory.
#[derive(Default)]
pub struct MemoryDisk {
    tables: Arc<RwLock<Tables>>,
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
        Self { tables: Arc::clone(&self.tables), crash_trigger: None }
    }

    /// Has the trigger decide when this disk crashes.
    #[must_use]
    pub fn with_crash_trigger(mut self, crash_trigger: Arc<CrashTrigger>) -> Self {
        self.crash_trigger = Some(crash_trigger);
        self
    }

    pub fn reader(&self) -> MemoryReader {
        MemoryReader(Arc::clone(&self.tables))
    }
}

/// The error of a disk that has crashed. To its callers the store is unavailable for a while: they try again until their
/// process has ended.
fn crashed() -> DiskError {
    DiskError::Failed("the process has crashed".into())
}

impl Disk for MemoryDisk {
    fn begin(&mut self) -> Result<Box<dyn Transaction + '_>, DiskError> {
        let tables = self.tables.write();
        let crash_trigger = self.crash_trigger.as_deref();
        // Checked while the lock is held, so that a disk that is opened after the crash sees every commit of this one.
        if crash_trigger.is_some_and(CrashTrigger::has_crashed) {
            return Err(crashed());
        }
        Ok(Box::new(MemoryTransaction::new(tables, crash_trigger)))
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
