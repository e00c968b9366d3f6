//! Wakes the watches of a task when it changes. All watches of a task share one counter.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::HashMap;
use longhaul_task::TaskKey;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// The watches of this node, by task, and those of the queue.
#[derive(Debug, Default)]
pub struct Watchers {
    by_task: Mutex<HashMap<TaskKey, WatchedTask>>,
    queue: Arc<Changes>,
}

#[derive(Debug, Default)]
struct WatchedTask {
    watches: usize,
    changes: Arc<Changes>,
}

/// Counts changes and wakes the futures that wait for the next one, in the order in which they began to wait.
/// (`tokio::sync::watch` wakes them in a random order, so the simulator could not repeat a history.)
#[derive(Debug, Default)]
struct Changes {
    count: AtomicU64,
    notify: Notify,
}

impl Changes {
    fn add(&self) {
        self.count.fetch_add(1, Ordering::SeqCst);
        self.notify.notify_waiters();
    }

    fn count(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }
}

/// Follows one task, or the queue. It tells that something may have changed, not what: read the task to find out. It may
/// wake without a change, and never misses one.
#[derive(Debug)]
pub struct Watch {
    /// `None` for the queue.
    key: Option<TaskKey>,
    changes: Arc<Changes>,
    /// The count of changes that this watch has reported.
    seen: u64,
    watchers: Arc<Watchers>,
}

impl Watchers {
    /// Begins to follow a task.
    pub fn follow(self: &Arc<Self>, key: &TaskKey) -> Watch {
        let mut by_task = self.by_task.lock();
        let followed = by_task.entry(key.clone()).or_default();
        followed.watches += 1;
        self.watch(Some(key.clone()), &followed.changes)
    }

    /// Begins to follow the queue.
    pub fn follow_queue(self: &Arc<Self>) -> Watch {
        self.watch(None, &self.queue)
    }

    fn watch(self: &Arc<Self>, key: Option<TaskKey>, changes: &Arc<Changes>) -> Watch {
        Watch { key, changes: Arc::clone(changes), seen: changes.count(), watchers: Arc::clone(self) }
    }

    /// Wakes the watches of this task.
    pub fn changed(&self, key: &TaskKey) {
        if let Some(followed) = self.by_task.lock().get(key) {
            followed.changes.add();
        }
    }

    /// Wakes the watches of the queue: a task has entered it, or will at a later time.
    pub fn queue_changed(&self) {
        self.queue.add();
    }

    /// Wakes all watches, because notifications of some changes may have been lost.
    pub fn all_changed(&self) {
        for followed in self.by_task.lock().values() {
            followed.changes.add();
        }
        self.queue_changed();
    }

    /// The number of tasks with a watch.
    pub fn count(&self) -> usize {
        self.by_task.lock().len()
    }
}

impl Watch {
    /// Waits until something may have changed since this was last called (or since the watch began).
    pub async fn changed(&mut self) {
        loop {
            // Before the count is read: a change after that wakes this future even if it was not polled yet.
            let notify = self.changes.notify.notified();
            let count = self.changes.count();
            if count != self.seen {
                self.seen = count;
                return;
            }
            notify.await;
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let Some(key) = &self.key else { return };
        let mut by_task = self.watchers.by_task.lock();
        if let Some(followed) = by_task.get_mut(key) {
            followed.watches -= 1;
            if followed.watches == 0 {
                by_task.remove(key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use longhaul_task::{Owner, TaskId};

    use super::*;

    fn is_woken(watch: &mut Watch) -> bool {
        pin!(watch.changed()).poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn every_watch_wakes_when_some_changes_may_have_been_lost() {
        let watchers = Arc::new(Watchers::default());
        let key = |id| TaskKey { owner: Owner::parse("ada").unwrap(), id: TaskId::parse(id).unwrap() };
        let mut followers = [watchers.follow(&key("a")), watchers.follow(&key("b")), watchers.follow_queue()];
        assert!(!followers.iter_mut().any(is_woken));
        watchers.all_changed();
        assert!(followers.iter_mut().all(is_woken));
        assert!(!followers.iter_mut().any(is_woken), "once");
        drop(followers);
        assert_eq!(watchers.count(), 0);
    }
}
