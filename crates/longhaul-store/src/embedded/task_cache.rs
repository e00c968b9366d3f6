//! The cache that readers see: the committed state of recent tasks.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use foldhash::fast::SeedableRandomState;
use longhaul_task::{Outcome, Progress, Task, TaskKey};
use parking_lot::RwLock;
use quick_cache::Equivalent;
use quick_cache::sync::{Cache, DefaultLifecycle};

use super::Hashing;
use crate::Snapshot;

/// Number of maps that the live tasks are divided among: enough that readers seldom wait for the same lock.
const SHARDS: usize = 16;

/// Maximum length of `TaskCache::load_marks`: 256 KiB.
const MARKS_MAX: usize = 1 << 16;

/// Estimated size of a cached task without its texts: the struct, its reference counts, its entry in the map.
const ENTRY_BYTES: usize = 640;

type LiveTasks = HashMap<TaskKey, Snapshot, SeedableRandomState>;

/// Committed tasks in memory. Live tasks are kept, because they are read and changed often. Parked tasks are not: they may
/// wait for days, and a read loads them from the disk. Settled tasks never change, so they can be dropped and
/// loaded again; they share a budget of bytes.
#[derive(Debug)]
pub(super) struct TaskCache {
    hasher: SeedableRandomState,
    live: [RwLock<LiveTasks>; SHARDS],
    settled: Cache<TaskByKey, Snapshot, TaskWeight, SeedableRandomState>,
    /// Marks of settled tasks that were loaded from the disk. Only a task that is loaded a second time enters the
    /// cache: tasks that are read once would evict each other, and each insertion costs time.
    load_marks: Box<[AtomicU32]>,
    /// Counts deletions, so that a reader that loaded a task before its deletion does not put it back into the cache.
    deletions: AtomicU64,
}

impl TaskCache {
    pub(super) fn new(settled_bytes_max: u64, hashing: Hashing) -> Self {
        let tasks_expected = usize::try_from(settled_bytes_max / 1_024).unwrap_or(usize::MAX).max(16);
        let hasher = match hashing {
            Hashing::Random => SeedableRandomState::random(),
            Hashing::Fixed => SeedableRandomState::fixed(),
        };
        let lifecycle = DefaultLifecycle::default();
        Self {
            hasher: hasher.clone(),
            live: std::array::from_fn(|_| RwLock::new(LiveTasks::with_hasher(hasher.clone()))),
            settled: Cache::with(tasks_expected, settled_bytes_max, TaskWeight, hasher, lifecycle),
            load_marks: std::iter::repeat_with(AtomicU32::default).take(tasks_expected.min(MARKS_MAX)).collect(),
            deletions: AtomicU64::new(0),
        }
    }

    fn shard(&self, key: &TaskKey) -> &RwLock<LiveTasks> {
        let hash = self.hasher.hash_one(&key.id);
        &self.live[usize::try_from(hash % SHARDS as u64).unwrap_or_default()]
    }

    /// The committed task, if it is in the cache.
    pub(super) fn get(&self, key: &TaskKey) -> Option<Snapshot> {
        if let Some(live) = self.shard(key).read().get(key) {
            return Some(live.clone());
        }
        self.settled.get(key)
    }

    /// Shows a committed task. Only the writer calls this, in the order of its commits.
    pub(super) fn show(&self, task: &Arc<Task>) {
        let mut live = self.shard(&task.key).write();
        if task.is_settled() {
            // The insertion comes before the removal, so that a reader always finds the task in one of the maps.
            let progress = live.get(&task.key).and_then(|snapshot| snapshot.progress.clone());
            self.settled.insert(TaskByKey(Arc::clone(task)), Snapshot { task: Arc::clone(task), progress });
            live.remove(&task.key);
        } else if task.phase.wake_condition().is_some() {
            live.remove(&task.key);
        } else if let Some(snapshot) = live.get_mut(&task.key) {
            // A new attempt has made no progress yet.
            if snapshot.task.attempt != task.attempt {
                snapshot.progress = None;
            }
            snapshot.task = Arc::clone(task);
        } else {
            live.insert(task.key.clone(), Snapshot { task: Arc::clone(task), progress: None });
        }
    }

    /// Sets the progress of a live task, if `fence` is still current. Returns the number of the task's attempt.
    pub(super) fn show_progress(&self, key: &TaskKey, fence: u64, progress: Arc<Progress>) -> Option<u32> {
        match self.shard(key).write().get_mut(key) {
            Some(snapshot) if snapshot.task.fence == fence => {
                snapshot.progress = Some(progress);
                Some(snapshot.task.attempt)
            }
            _ => None,
        }
    }

    pub(super) fn forget(&self, keys: &[TaskKey]) {
        self.deletions.fetch_add(1, Ordering::SeqCst);
        for key in keys {
            self.shard(key).write().remove(key);
            self.settled.remove(key);
        }
    }

    /// A reader calls this before it loads a task, and passes the value to [`remember`](Self::remember).
    pub(super) fn deletions(&self) -> u64 {
        self.deletions.load(Ordering::SeqCst)
    }

    /// Marks a task as loaded. Returns whether it was marked before. Tasks share places for marks, so a mark may have
    /// been overwritten.
    fn mark_loaded(&self, key: &TaskKey) -> bool {
        let hash = self.hasher.hash_one(key);
        let mark = u32::try_from(hash >> 32).unwrap_or_default() | 1;
        let index = usize::try_from(hash % self.load_marks.len() as u64).unwrap_or_default();
        self.load_marks[index].swap(mark, Ordering::Relaxed) == mark
    }

    /// Keeps a settled task that was loaded for the second time, if nothing was deleted since `deletions` was read.
    pub(super) fn remember(&self, snapshot: &Snapshot, deletions: u64) {
        let key = &snapshot.task.key;
        if !snapshot.task.is_settled() || !self.mark_loaded(key) {
            return;
        }
        self.settled.insert(TaskByKey(Arc::clone(&snapshot.task)), snapshot.clone());
        if self.deletions() != deletions {
            self.settled.remove(key);
        }
    }
}

/// A task as its own key in the map, so that the [`TaskKey`] is not stored twice.
#[derive(Debug)]
struct TaskByKey(Arc<Task>);

impl Hash for TaskByKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.key.hash(state);
    }
}

impl PartialEq for TaskByKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.key == other.0.key
    }
}

impl Eq for TaskByKey {}

impl Equivalent<TaskByKey> for TaskKey {
    fn equivalent(&self, TaskByKey(task): &TaskByKey) -> bool {
        *self == task.key
    }
}

#[derive(Debug, Clone)]
struct TaskWeight;

impl quick_cache::Weighter<TaskByKey, Snapshot> for TaskWeight {
    fn weight(&self, TaskByKey(task): &TaskByKey, snapshot: &Snapshot) -> u64 {
        let outcome = match task.phase.outcome() {
            Some(Outcome::Result { body, .. }) => body.bytes(),
            Some(Outcome::Error(fault)) => {
                fault.message.len() + fault.data.as_ref().map_or(0, longhaul_task::Json::bytes)
            }
            Some(Outcome::Cancelled) | None => 0,
        };
        let progress = snapshot.progress.as_ref().and_then(|progress| progress.message.as_ref());
        let message = [task.message.as_ref(), progress].into_iter().flatten().map(|text| text.len()).sum::<usize>();
        (ENTRY_BYTES + task.key.id.as_str().len() + outcome + message) as u64
    }
}
