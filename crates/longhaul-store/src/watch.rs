//! One watcher per task serves everyone who waits for it.

use std::collections::HashMap;
use std::sync::Arc;

use longhaul_task::TaskKey;
use parking_lot::Mutex;
use tokio::sync::watch;

/// Who follows which task on this node, and the queue.
#[derive(Debug)]
pub struct Watchers {
    following: Mutex<HashMap<TaskKey, watch::Sender<u64>>>,
    queue: watch::Sender<u64>,
}

/// Follows one task, or the queue. It says that something may have changed, not what: read to see how things stand. It
/// may wake for nothing, and never misses a change.
#[derive(Debug)]
pub struct Watch {
    /// The task; none for the queue.
    key: Option<TaskKey>,
    changes: watch::Receiver<u64>,
    watchers: Arc<Watchers>,
}

impl Default for Watchers {
    fn default() -> Self {
        Self { following: Mutex::default(), queue: watch::channel(0).0 }
    }
}

impl Watchers {
    /// Begins to follow a task.
    pub fn follow(self: &Arc<Self>, key: &TaskKey) -> Watch {
        let mut following = self.following.lock();
        let sender = following.entry(key.clone()).or_insert_with(|| watch::channel(0).0);
        let changes = sender.subscribe();
        Watch { key: Some(key.clone()), changes, watchers: Arc::clone(self) }
    }

    /// Begins to follow the queue.
    pub fn follow_queue(self: &Arc<Self>) -> Watch {
        Watch { key: None, changes: self.queue.subscribe(), watchers: Arc::clone(self) }
    }

    /// Tells everyone who follows this task that it changed.
    pub fn changed(&self, key: &TaskKey) {
        if let Some(sender) = self.following.lock().get(key) {
            sender.send_modify(|count| *count += 1);
        }
    }

    /// Tells everyone who follows the queue that somebody entered it, or will.
    pub fn queue_changed(&self) {
        self.queue.send_modify(|count| *count += 1);
    }

    /// Tells everyone to look again: word of some changes may have been lost.
    pub fn all_changed(&self) {
        for sender in self.following.lock().values() {
            sender.send_modify(|count| *count += 1);
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
        // The sender lives for as long as this watch does, so the channel cannot close under it.
        let _ = self.changes.changed().await;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let Some(key) = &self.key else { return };
        let mut following = self.watchers.following.lock();
        // Under the lock nobody can subscribe, so the last one out is known.
        if following.get(key).is_some_and(|sender| sender.receiver_count() <= 1) {
            following.remove(key);
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
    fn everybody_looks_again_when_word_of_some_changes_may_have_been_lost() {
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
