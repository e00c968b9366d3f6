//! The backend in memory: for tests, for the simulator, and for tasks that need not survive the process.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use longhaul_task::{
    JournalEntry, Json, NodeId, Owner, Progress, QuestionKey, Task, TaskId, TaskKey, Timestamp, ToolRef,
};
use parking_lot::lock_api::ArcRwLockWriteGuard;
use parking_lot::{RawRwLock, RwLock};

use crate::embedded::{Disk, DiskError, Embedded, EmbeddedLimits, Reader, StoredEntry};
use crate::{Clock, HeldAttempt, ListQuery, Snapshot, TaskCount, TaskPage};

/// Opens an empty store in memory.
///
/// ```
/// use longhaul_store::{Store, SystemClock, memory};
///
/// let store = memory::open(SystemClock).unwrap();
/// # let _: &dyn Store = &store;
/// ```
pub fn open(clock: impl Clock) -> std::io::Result<Embedded> {
    let disk = MemoryDisk::default();
    let reader = disk.reader();
    Embedded::start(disk, reader, clock, &EmbeddedLimits::default())
}

/// The tables of a store in memory. The writer holds their lock from `begin` to the end of its transaction.
#[derive(Default)]
pub struct MemoryDisk {
    tables: Arc<RwLock<Tables>>,
    transaction: Option<ArcRwLockWriteGuard<RawRwLock, Tables>>,
    /// How to revert the writes of the open transaction, the newest last.
    undo: Vec<Undo>,
}

/// Reads the committed tables.
#[derive(Clone)]
pub struct MemoryReader(Arc<RwLock<Tables>>);

#[derive(Default)]
struct Tables {
    rows: BTreeMap<TaskKey, MemoryRow>,
    queue: BTreeMap<ToolRef, QueueByOwner>,
    due: BTreeSet<(Timestamp, TaskKey)>,
    /// The node and the fence of the attempt that holds each task.
    held: BTreeMap<TaskKey, (NodeId, u64)>,
    /// By parent and position among its children.
    children: BTreeMap<(TaskKey, u32), TaskId>,
    secrets: HashMap<String, [u8; 32]>,
}

/// By owner: the earliest time of a claim, the time of creation and the ID.
type QueueByOwner = BTreeMap<Owner, BTreeSet<(Timestamp, Timestamp, TaskId)>>;

#[derive(Clone)]
struct MemoryRow {
    task: Task,
    input: Json,
    progress: Option<Arc<Progress>>,
    records: BTreeMap<(u32, longhaul_task::JournalPosition), StoredEntry>,
}

enum Undo {
    Row(TaskKey, Option<Box<MemoryRow>>),
    Secret(String),
}

impl Tables {
    /// Replaces a row and its index entries. Every change of a row goes through this function.
    fn put(&mut self, key: &TaskKey, row: Option<MemoryRow>) -> Option<MemoryRow> {
        let before = self.rows.remove(key);
        if let Some(row) = &before {
            self.unindex(&row.task);
        }
        if let Some(row) = row {
            self.index(&row.task);
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

    fn snapshot(row: &MemoryRow) -> Snapshot {
        Snapshot { task: Arc::new(row.task.clone()), progress: row.progress.clone() }
    }
}

/// Each owner with the earliest time of its queued tasks.
fn earliest_times(owners: &QueueByOwner) -> impl Iterator<Item = (Owner, Timestamp)> {
    owners.iter().filter_map(|(owner, tasks)| Some((owner.clone(), tasks.first()?.0)))
}

fn parent_key(task: &Task) -> Option<TaskKey> {
    task.family.parent.clone().map(|id| TaskKey { owner: task.key.owner.clone(), id })
}

impl MemoryDisk {
    /// A disk on the same tables, for a store that is started after this one has crashed or been closed.
    pub fn same_tables(&self) -> Self {
        Self { tables: Arc::clone(&self.tables), transaction: None, undo: Vec::new() }
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
        let missing = || DiskError::Failed(format!("no row {key:?}"));
        let mut row = self.tables()?.rows.get(key).cloned().ok_or_else(missing)?;
        change(&mut row);
        self.put(key, Some(row))
    }
}

/// Rolls an open transaction back.
impl Drop for MemoryDisk {
    fn drop(&mut self) {
        self.rollback();
    }
}

impl Disk for MemoryDisk {
    fn begin(&mut self) -> Result<(), DiskError> {
        self.transaction = Some(self.tables.write_arc());
        Ok(())
    }

    fn commit(&mut self) -> Result<(), DiskError> {
        self.undo.clear();
        self.transaction = None;
        Ok(())
    }

    fn rollback(&mut self) {
        if let Some(mut tables) = self.transaction.take() {
            for undo in self.undo.drain(..).rev() {
                match undo {
                    Undo::Row(key, before) => {
                        tables.put(&key, before.map(|row| *row));
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

    fn open_children(&mut self, key: &TaskKey) -> Result<u32, DiskError> {
        Ok(u32::try_from(self.tables()?.open_children(key).len()).unwrap_or(u32::MAX))
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

    fn insert(&mut self, task: &Task, input: &Json) -> Result<bool, DiskError> {
        if self.tables()?.rows.contains_key(&task.key) {
            return Ok(false);
        }
        let row = MemoryRow { task: task.clone(), input: input.clone(), progress: None, records: BTreeMap::new() };
        self.put(&task.key, Some(row))?;
        Ok(true)
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
        }
        Ok(members)
    }

    fn insert_record(
        &mut self,
        key: &TaskKey,
        epoch: u32,
        record: &JournalEntry,
        question: Option<&QuestionKey>,
    ) -> Result<Option<StoredEntry>, DiskError> {
        let new = StoredEntry { record: record.clone(), question: question.cloned() };
        let mut existing = None;
        self.change(key, |row| match row.records.entry((epoch, record.position.clone())) {
            Entry::Vacant(entry) => {
                entry.insert(new);
            }
            Entry::Occupied(entry) => existing = Some(entry.get().clone()),
        })?;
        Ok(existing)
    }

    fn answer_record(&mut self, key: &TaskKey, question: &QuestionKey, output: &Json) -> Result<(), DiskError> {
        self.change(key, |row| {
            let entry = row.records.values_mut().find(|entry| entry.question.as_ref() == Some(question));
            if let Some(entry) = entry {
                entry.record.output = Some(output.clone());
            }
        })
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

    fn records(&self, key: &TaskKey, epoch: u32) -> Result<Vec<JournalEntry>, DiskError> {
        let tables = self.0.read();
        let all = tables.rows.get(key).into_iter().flat_map(|row| &row.records);
        Ok(all
            .filter(|((entry_epoch, _), _)| *entry_epoch == epoch)
            .map(|(_, recorded)| recorded.record.clone())
            .collect())
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
