//! Log lines on their way from a task to its listeners. Nothing is stored, and no handler waits: a listener
//! that is slow misses the oldest of what it has not taken yet.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use longhaul_task::{Json, TaskKey};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Lines that wait for one listener.
const UNHEARD_MAX: usize = 64;

/// The longest log line in bytes: its data as JSON, and the name of its logger.
pub const LOG_BYTES_MAX: usize = 16 << 10;

/// How severe a log line is, mildest first: the severities of syslog (RFC 5424, section 6.2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

/// One log line of a handler. It is not stored: it reaches the clients that follow the work at that moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// How severe it is.
    pub severity: Severity,
    /// The part of the work that logs.
    pub logger: Option<Arc<str>>,
    /// Any JSON value.
    pub data: Json,
}

impl LogLine {
    /// A line within [`LOG_BYTES_MAX`]. The data of a longer line are replaced by a sentence that says how long it was.
    pub fn new(severity: Severity, logger: Option<&str>, data: Json) -> Self {
        let bytes = data.bytes() + logger.map_or(0, str::len);
        if bytes <= LOG_BYTES_MAX {
            return Self { severity, logger: logger.map(Arc::from), data };
        }
        let instead = format!("\"A log line of {bytes} bytes was left out: {LOG_BYTES_MAX} are the most.\"");
        Self { severity, logger: None, data: Json::from_text(instead) }
    }
}

/// Who listens to which task, on this node.
#[derive(Default)]
pub(crate) struct Listeners {
    by_task: Mutex<HashMap<TaskKey, Vec<Arc<ListenerQueue>>>>,
}

#[derive(Default)]
struct ListenerQueue {
    lines: Mutex<Lines>,
    news: Notify,
}

#[derive(Default)]
struct Lines {
    waiting: VecDeque<LogLine>,
    /// How many lines there were since the listener began, taken or not.
    count: usize,
}

impl Lines {
    fn trim(&mut self) {
        let excess = self.waiting.len().saturating_sub(UNHEARD_MAX);
        self.waiting.drain(..excess);
    }
}

impl Listeners {
    /// Gives every listener of a task this line.
    pub(crate) fn tell(&self, key: &TaskKey, line: &LogLine) {
        for unheard in self.by_task.lock().get(key).into_iter().flatten() {
            let mut lines = unheard.lines.lock();
            lines.waiting.push_back(line.clone());
            lines.count += 1;
            lines.trim();
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
        self.unheard.lines.lock().waiting.drain(..).for_each(to);
    }

    /// Takes over the lines of a listener to the same task that began earlier: those from before this one began.
    pub fn begin_with(&self, earlier: &Self) {
        // With this lock held, no line comes to one of the two and not yet to the other.
        let _no_new_lines = self.listeners.by_task.lock();
        let (mut ours, mut theirs) = (self.unheard.lines.lock(), earlier.unheard.lines.lock());
        let missed = theirs.waiting.len().saturating_sub(ours.count);
        for line in theirs.waiting.drain(..missed).rev() {
            ours.waiting.push_front(line);
        }
        ours.trim();
        self.unheard.news.notify_one();
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
    use longhaul_task::{Owner, TaskId};

    use super::*;

    fn line(number: usize) -> LogLine {
        LogLine::new(Severity::Info, None, Json::from_text(number.to_string()))
    }

    fn take_lines(tail: &LogTail) -> Vec<LogLine> {
        let mut lines = Vec::new();
        tail.pass_on(|line| lines.push(line));
        lines
    }

    #[test]
    fn a_line_that_is_too_long_says_only_how_long_it_was() {
        let of = |bytes: usize| Json::from_text(format!("\"{}\"", "x".repeat(bytes - 2)));
        let line = LogLine::new(Severity::Info, None, of(LOG_BYTES_MAX));
        assert_eq!(line.data.bytes(), LOG_BYTES_MAX);
        for line in [
            LogLine::new(Severity::Info, None, of(LOG_BYTES_MAX + 1)),
            LogLine::new(Severity::Info, Some(&"x".repeat(LOG_BYTES_MAX)), of(2)),
        ] {
            assert!(line.data.bytes() < 100 && line.data.as_str().contains("left out"), "{line:?}");
        }
    }

    #[test]
    fn a_slow_listener_misses_the_oldest_lines_and_delays_no_other() {
        let listeners = Arc::new(Listeners::default());
        let key = TaskKey { owner: Owner::parse("ada").unwrap(), id: TaskId::parse("t-1").unwrap() };
        listeners.tell(&key, &line(0));
        let (slow, quick) = (listeners.listen(&key), listeners.listen(&key));
        for number in 1..=UNHEARD_MAX + 3 {
            listeners.tell(&key, &line(number));
            assert_eq!(take_lines(&quick), [line(number)], "a line said before is not heard, one said since is");
        }
        assert_eq!(take_lines(&slow), (4..=UNHEARD_MAX + 3).map(line).collect::<Vec<_>>());
        drop((slow, quick));
        assert!(listeners.by_task.lock().is_empty(), "nothing is kept for those who are gone");
    }

    #[test]
    fn a_later_listener_takes_over_the_lines_from_before_it_began_once() {
        let listeners = Arc::new(Listeners::default());
        let key = TaskKey { owner: Owner::parse("ada").unwrap(), id: TaskId::parse("t-1").unwrap() };
        let earlier = listeners.listen(&key);
        listeners.tell(&key, &line(1));
        let later = listeners.listen(&key);
        listeners.tell(&key, &line(2));
        later.begin_with(&earlier);
        assert_eq!(take_lines(&later), [line(1), line(2)]);
    }
}
