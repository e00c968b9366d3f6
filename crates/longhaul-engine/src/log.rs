//! Log lines on their way from a task to its listeners. Nothing is stored, and no handler waits: a listener
//! that is slow misses the oldest of what it has not taken yet.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use longhaul_task::{LogLine, TaskKey};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Lines that wait for one listener.
const UNHEARD_MAX: usize = 64;

/// Who listens to which task, on this node.
#[derive(Default)]
pub(crate) struct Listeners {
    by_task: Mutex<HashMap<TaskKey, Vec<Arc<ListenerQueue>>>>,
}

#[derive(Default)]
struct ListenerQueue {
    lines: Mutex<VecDeque<LogLine>>,
    news: Notify,
}

impl Listeners {
    /// Gives every listener of a task this line.
    pub(crate) fn tell(&self, key: &TaskKey, line: &LogLine) {
        for unheard in self.by_task.lock().get(key).into_iter().flatten() {
            let mut lines = unheard.lines.lock();
            if lines.len() >= UNHEARD_MAX {
                lines.pop_front();
            }
            lines.push_back(line.clone());
            drop(lines);
            unheard.news.notify_one();
        }
    }

    /// Listens to a task from now on.
    pub(crate) fn listen(self: &Arc<Self>, key: &TaskKey) -> LogTail {
        let unheard = Arc::<ListenerQueue>::default();
        self.by_task.lock().entry(key.clone()).or_default().push(Arc::clone(&unheard));
        LogTail { listeners: Arc::clone(self), key: key.clone(), unheard }
    }
}

/// What a task logs, from when this was made until it is dropped.
pub struct LogTail {
    listeners: Arc<Listeners>,
    key: TaskKey,
    unheard: Arc<ListenerQueue>,
}

impl LogTail {
    /// Resolves when something was said since the last time, for one that waits.
    pub async fn changed(&self) {
        self.unheard.news.notified().await;
    }

    /// Passes on what was said and not passed on yet. A second call at the same time waits, so that the order stays.
    pub fn pass_on(&self, to: impl FnMut(LogLine)) {
        self.unheard.lines.lock().drain(..).for_each(to);
    }
}

impl Drop for LogTail {
    fn drop(&mut self) {
        let mut by_task = self.listeners.by_task.lock();
        if let Some(listening) = by_task.get_mut(&self.key) {
            listening.retain(|unheard| !Arc::ptr_eq(unheard, &self.unheard));
            if listening.is_empty() {
                by_task.remove(&self.key);
            }
        }
    }
}

impl fmt::Debug for LogTail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogTail").field("task", &self.key.id).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use longhaul_task::{Json, LogLevel, Owner, TaskId};

    use super::*;

    fn line(number: usize) -> LogLine {
        LogLine::new(LogLevel::Info, None, Json::from_text(number.to_string()))
    }

    fn heard(tail: &LogTail) -> Vec<LogLine> {
        let mut lines = Vec::new();
        tail.pass_on(|line| lines.push(line));
        lines
    }

    #[test]
    fn a_listener_that_does_not_keep_up_misses_the_oldest_lines_and_delays_no_one() {
        let listeners = Arc::new(Listeners::default());
        let key = TaskKey { owner: Owner::parse("ada").unwrap(), id: TaskId::parse("t-1").unwrap() };
        listeners.tell(&key, &line(0));
        let (slow, quick) = (listeners.listen(&key), listeners.listen(&key));
        for number in 1..=UNHEARD_MAX + 3 {
            listeners.tell(&key, &line(number));
            assert_eq!(heard(&quick), [line(number)], "a line said before is not heard, one said since is");
        }
        assert_eq!(heard(&slow), (4..=UNHEARD_MAX + 3).map(line).collect::<Vec<_>>());
        drop((slow, quick));
        assert!(listeners.by_task.lock().is_empty(), "nothing is kept for those who are gone");
    }
}
