//! The committed state of recent tasks, in memory.

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

/// Shards of the map of live tasks: enough to make contention rare on a small machine.
const SHARDS: usize = 16;

/// The most marks of loaded tasks. They take a quarter of a megabyte.
const MARKS_MAX: usize = 1 << 16;

/// The memory of a cached task without its texts: the struct, its handles, its entry in the map.
const ENTRY_BYTES: usize = 640;

type Live = HashMap<TaskKey, Snapshot, SeedableRandomState>;

/// Committed tasks in memory. Live tasks stay, because they are read and written often. Settled tasks are final, so
/// they can be evicted and loaded again; they share a budget of bytes.
#[derive(Debug)]
pub(super) struct TaskCache {
    hasher: SeedableRandomState,
    live: [RwLock<Live>; SHARDS],
    settled: Cache<ByKey, Snapshot, Weight, SeedableRandomState>,
    /// Marks of settled tasks that were loaded. A task enters the cache at its second load. Otherwise random reads of a
    /// million tasks would evict each other at the cost of an insertion each.
    loaded: Box<[AtomicU32]>,
    /// Counts deletions, so that a reader that loaded a task before its deletion does not put it back.
    deletions: AtomicU64,
}

impl TaskCache {
    /// An empty cache with that budget for settled tasks.
    pub(super) fn new(settled_bytes_max: u64, hashing: Hashing) -> Self {
        let tasks_expected = usize::try_from(settled_bytes_max / 1_024).unwrap_or(usize::MAX).max(16);
        let hasher = match hashing {
            Hashing::Random => SeedableRandomState::random(),
            Hashing::Fixed => SeedableRandomState::fixed(),
        };
        let lifecycle = DefaultLifecycle::default();
        Self {
            hasher: hasher.clone(),
            live: std::array::from_fn(|_| RwLock::new(Live::with_hasher(hasher.clone()))),
            settled: Cache::with(tasks_expected, settled_bytes_max, Weight, hasher, lifecycle),
            loaded: std::iter::repeat_with(AtomicU32::default).take(tasks_expected.min(MARKS_MAX)).collect(),
            deletions: AtomicU64::new(0),
        }
    }

    fn shard(&self, key: &TaskKey) -> &RwLock<Live> {
        let hash = self.hasher.hash_one(&key.id);
        &self.live[usize::try_from(hash % SHARDS as u64).unwrap_or_default()]
    }

    /// The committed task, if it is here.
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
            // Inserted as settled before it is removed as live, so that a concurrent reader finds it in one of the two.
            let progress = live.get(&task.key).and_then(|snapshot| snapshot.progress.clone());
            self.settled.insert(ByKey(Arc::clone(task)), Snapshot { task: Arc::clone(task), progress });
            live.remove(&task.key);
        } else if let Some(snapshot) = live.get_mut(&task.key) {
            // A new attempt starts without progress.
            if snapshot.task.attempt != task.attempt {
                snapshot.progress = None;
            }
            snapshot.task = Arc::clone(task);
        } else {
            live.insert(task.key.clone(), Snapshot { task: Arc::clone(task), progress: None });
        }
    }

    /// Sets the progress of a live task if the fence is current. Returns the number of the attempt.
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

    /// The argument for [`remember`](Self::remember), to be read before the load.
    pub(super) fn deletions(&self) -> u64 {
        self.deletions.load(Ordering::SeqCst)
    }

    /// Whether the task was loaded before. May be false if its mark was overwritten.
    fn was_loaded_before(&self, key: &TaskKey) -> bool {
        let hash = self.hasher.hash_one(key);
        let mark = u32::try_from(hash >> 32).unwrap_or_default() | 1;
        let index = usize::try_from(hash % self.loaded.len() as u64).unwrap_or_default();
        self.loaded[index].swap(mark, Ordering::Relaxed) == mark
    }

    /// Caches a settled task at its second load, unless a task was deleted since `deletions` was read.
    pub(super) fn remember(&self, snapshot: &Snapshot, deletions: u64) {
        let key = &snapshot.task.key;
        if !snapshot.task.is_settled() || !self.was_loaded_before(key) {
            return;
        }
        self.settled.insert(ByKey(Arc::clone(&snapshot.task)), snapshot.clone());
        if self.deletions() != deletions {
            self.settled.remove(key);
        }
    }
}

/// A task that is hashed by its key, so that the set needs no copy of the key.
#[derive(Debug)]
struct ByKey(Arc<Task>);

impl Hash for ByKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.key.hash(state);
    }
}

impl PartialEq for ByKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.key == other.0.key
    }
}

impl Eq for ByKey {}

impl Equivalent<ByKey> for TaskKey {
    fn equivalent(&self, ByKey(task): &ByKey) -> bool {
        *self == task.key
    }
}

#[derive(Debug, Clone)]
struct Weight;

impl quick_cache::Weighter<ByKey, Snapshot> for Weight {
    fn weight(&self, ByKey(task): &ByKey, snapshot: &Snapshot) -> u64 {
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
