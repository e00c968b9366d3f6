//! One watcher per task serves everyone who waits for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::HashMap;
use longhaul_task::TaskKey;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Who follows which task on this node, and the queue.
#[derive(Debug, Default)]
pub struct Watchers {
    following: Mutex<HashMap<TaskKey, WatchedTask>>,
    queue: Arc<Changes>,
}

#[derive(Debug, Default)]
struct WatchedTask {
    watches: usize,
    changes: Arc<Changes>,
}

/// Counts changes and wakes those who wait for the next one, in the order in which they began to wait. (`tokio::sync::watch`
/// wakes them in a random order, and the simulator could not repeat a history.)
#[derive(Debug, Default)]
struct Changes {
    count: AtomicU64,
    news: Notify,
}

impl Changes {
    fn add(&self) {
        self.count.fetch_add(1, Ordering::SeqCst);
        self.news.notify_waiters();
    }

    fn count(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }
}

/// Follows one task, or the queue. It says that something may have changed, not what: read to see how things stand. It
/// may wake for nothing, and never misses a change.
#[derive(Debug)]
pub struct Watch {
    /// The task; none for the queue.
    key: Option<TaskKey>,
    changes: Arc<Changes>,
    /// The count of changes that this watch has told of.
    seen: u64,
    watchers: Arc<Watchers>,
}

impl Watchers {
    /// Begins to follow a task.
    pub fn follow(self: &Arc<Self>, key: &TaskKey) -> Watch {
        let mut following = self.following.lock();
        let followed = following.entry(key.clone()).or_default();
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

    /// Tells everyone who follows this task that it changed.
    pub fn changed(&self, key: &TaskKey) {
        if let Some(followed) = self.following.lock().get(key) {
            followed.changes.add();
        }
    }

    /// Tells everyone who follows the queue that a task entered it, or will.
    pub fn queue_changed(&self) {
        self.queue.add();
    }

    /// Tells everyone to look again: word of some changes may have been lost.
    pub fn all_changed(&self) {
        for followed in self.following.lock().values() {
            followed.changes.add();
        }
        self.queue_changed();
    }

    /// How many tasks are followed.
    pub fn count(&self) -> usize {
        self.following.lock().len()
    }
}

impl Watch {
    /// Waits until something may have changed since this was last called (or since the watch began).
    pub async fn changed(&mut self) {
        loop {
            // Before the count is read: a change after that wakes this future even if it was not polled yet.
            let news = self.changes.news.notified();
            let count = self.changes.count();
            if count != self.seen {
                self.seen = count;
                return;
            }
            news.await;
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let Some(key) = &self.key else { return };
        let mut following = self.watchers.following.lock();
        if let Some(followed) = following.get_mut(key) {
            followed.watches -= 1;
            if followed.watches == 0 {
                following.remove(key);
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

    fn heard(watch: &mut Watch) -> bool {
        pin!(watch.changed()).poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn every_watch_wakes_when_some_changes_may_have_been_lost() {
        let watchers = Arc::new(Watchers::default());
        let key = |id| TaskKey { owner: Owner::parse("ada").unwrap(), id: TaskId::parse(id).unwrap() };
        let mut followers = [watchers.follow(&key("a")), watchers.follow(&key("b")), watchers.follow_queue()];
        assert!(!followers.iter_mut().any(heard));
        watchers.all_changed();
        assert!(followers.iter_mut().all(heard));
        assert!(!followers.iter_mut().any(heard), "once");
        drop(followers);
        assert_eq!(watchers.count(), 0);
    }
}
