//! What a batch has changed.

use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};
use longhaul_task::{Task, TaskKey};

use super::task_cache::TaskCache;
use crate::Watchers;

/// The changes of a batch. Readers must not see them before the commit.
pub(super) struct BatchChanges {
    /// The last change of each task.
    tasks: HashMap<TaskKey, ChangedTask>,
    /// In the order in which they are published.
    publications: Vec<Publication>,
}

pub(super) enum ChangedTask {
    Written(Arc<Task>),
    Deleted,
}

enum Publication {
    Task(Arc<Task>),
    Deleted(Vec<TaskKey>),
}

impl BatchChanges {
    pub(super) fn with_capacity(tasks: usize) -> Self {
        Self { tasks: HashMap::with_capacity(tasks), publications: Vec::with_capacity(tasks) }
    }

    /// The last change of a task; `None` if the batch has not changed it.
    pub(super) fn task(&self, key: &TaskKey) -> Option<&ChangedTask> {
        self.tasks.get(key)
    }

    pub(super) fn write(&mut self, task: &Arc<Task>) {
        self.tasks.insert(task.key.clone(), ChangedTask::Written(Arc::clone(task)));
        self.publications.push(Publication::Task(Arc::clone(task)));
    }

    pub(super) fn delete(&mut self, keys: Vec<TaskKey>) {
        self.tasks.extend(keys.iter().map(|key| (key.clone(), ChangedTask::Deleted)));
        self.publications.push(Publication::Deleted(keys));
    }

    /// Shows the changes to readers, after the commit.
    pub(super) fn publish(&self, cache: &TaskCache, watchers: &Watchers) {
        let mut queue_changed = false;
        for publication in &self.publications {
            match publication {
                Publication::Task(task) => {
                    queue_changed |= task.phase.not_before().is_some() || task.phase.wake_condition().is_some();
                    cache.show(task);
                    watchers.changed(&task.key);
                }
                Publication::Deleted(keys) => {
                    cache.forget(keys);
                    for key in keys {
                        watchers.changed(key);
                    }
                }
            }
        }
        if queue_changed {
            watchers.queue_changed();
        }
    }
}
