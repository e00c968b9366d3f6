//! Crashes a store in memory after a chosen journal entry. For tests.

use longhaul_task::{JournalEntry, TaskKey};
use parking_lot::Mutex;

/// Stops a store in memory as a kill of its process would: what was committed stays, and nothing further is written.
///
/// It also keeps all writes to the journal, in order. A new entry, a further failure of a step and the answer to a question
/// are one write each.
#[derive(Debug, Default)]
pub struct CrashTrigger {
    state: Mutex<CrashState>,
}

#[derive(Debug, Default)]
struct CrashState {
    after_entries: Option<usize>,
    written: Vec<(TaskKey, JournalEntry)>,
    has_crashed: bool,
}

impl CrashTrigger {
    /// Crashes the store after the commit that writes the entry with this number, counted from 1. The commit itself stays,
    /// and its caller gets an error.
    pub fn crash_after(&self, entries: usize) {
        self.state.lock().after_entries = Some(entries);
    }

    /// Crashes the store now.
    pub fn crash(&self) {
        self.state.lock().has_crashed = true;
    }

    pub fn has_crashed(&self) -> bool {
        self.state.lock().has_crashed
    }

    /// The entries that were written so far, in the order of their commits.
    pub fn written(&self) -> Vec<(TaskKey, JournalEntry)> {
        self.state.lock().written.clone()
    }

    /// Adds the entries of a commit. Returns whether the store crashes after it.
    pub(crate) fn committed(&self, entries: &mut Vec<(TaskKey, JournalEntry)>) -> bool {
        let mut state = self.state.lock();
        state.written.append(entries);
        state.has_crashed |= state.after_entries.is_some_and(|after| state.written.len() >= after);
        state.has_crashed
    }
}
