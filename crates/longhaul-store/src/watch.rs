//! One watcher per task serves everyone who waits for it.

use std::collections::HashMap;
use std::sync::Arc;

use longhaul_task::TaskKey;
use parking_lot::Mutex;
use tokio::sync::watch;

/// Who follows which task on this node.
#[derive(Debug, Default)]
pub struct Watchers {
    following: Mutex<HashMap<TaskKey, watch::Sender<u64>>>,
}

/// Follows one task. It says that something changed, not what: read the task to see where it stands.
#[derive(Debug)]
pub struct Watch {
    key: TaskKey,
    changes: watch::Receiver<u64>,
    watchers: Arc<Watchers>,
}

impl Watchers {
    /// Begins to follow a task.
    pub fn follow(self: &Arc<Self>, key: &TaskKey) -> Watch {
        let mut following = self.following.lock();
        let sender = following.entry(key.clone()).or_insert_with(|| watch::channel(0).0);
        let changes = sender.subscribe();
        Watch { key: key.clone(), changes, watchers: Arc::clone(self) }
    }

    /// Tells everyone who follows this task that it changed.
    pub fn changed(&self, key: &TaskKey) {
        if let Some(sender) = self.following.lock().get(key) {
            sender.send_modify(|count| *count += 1);
        }
    }

    /// How many tasks are followed.
    pub fn count(&self) -> usize {
        self.following.lock().len()
    }
}

impl Watch {
    /// Waits until the task changed since this was last called (or since the watch began).
    pub async fn changed(&mut self) {
        // The sender lives in the map for as long as this watch does, so the channel cannot close under it.
        let _ = self.changes.changed().await;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut following = self.watchers.following.lock();
        // Under the lock nobody can subscribe, so the last one out is known.
        if following.get(&self.key).is_some_and(|sender| sender.receiver_count() <= 1) {
            following.remove(&self.key);
        }
    }
}
