//! The durable half of a tool's declaration: what a task must know of its tool after a restart.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Which tool, and which version of it, a task was made for. Claims go by both, so that a handler never meets the
/// records of another version by accident.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ToolRef {
    /// The tool's name, as the requestor calls it.
    pub name: Arc<str>,
    /// The version its author gave it.
    pub version: Arc<str>,
}

impl ToolRef {
    /// A tool by name and version.
    pub fn new(name: impl Into<Arc<str>>, version: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), version: version.into() }
    }
}

impl fmt::Display for ToolRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.name, self.version)
    }
}

/// What happens to a task whose process died while it ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnCrash {
    /// It fails with `CRASH_RECOVERY`: the safe choice for a tool whose effects nobody has thought about.
    #[default]
    Fail,
    /// The handler runs again from the start.
    Retry,
    /// The handler runs again, and everything that was recorded returns what it returned before: answers to its
    /// questions, so far.
    Resume,
}

/// How a task of this tool may run. Stored with each task, so that recovery needs no tool to be registered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// What a crash means.
    pub on_crash: OnCrash,
    /// How many attempts there may be in all, the first included. Those that only slept or waited do not count.
    pub attempts_max: u32,
    /// The wait before the second attempt; it doubles from there.
    pub backoff_ms: u64,
    /// The longest wait between two attempts.
    pub backoff_ms_max: u64,
    /// How long a handler may run without waiting for an answer.
    pub running_ms_max: u64,
    /// How long a task may take from its creation to its end, waiting and queueing included.
    pub life_ms_max: u64,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            on_crash: OnCrash::Fail,
            attempts_max: 5,
            backoff_ms: 1_000,
            backoff_ms_max: 60_000,
            running_ms_max: 24 * 60 * 60 * 1_000,
            life_ms_max: 7 * 24 * 60 * 60 * 1_000,
        }
    }
}

impl Policy {
    /// The wait before the next attempt when so many have come to nothing.
    pub fn backoff_after_ms(&self, spent: u32) -> u64 {
        let doublings = spent.saturating_sub(1).min(32);
        self.backoff_ms.saturating_mul(1 << doublings).min(self.backoff_ms_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_between_attempts_doubles_up_to_its_limit() {
        let policy = Policy { backoff_ms: 100, backoff_ms_max: 1_000, ..Policy::default() };
        let waits: Vec<u64> = (1..=6).map(|attempt| policy.backoff_after_ms(attempt)).collect();
        assert_eq!(waits, [100, 200, 400, 800, 1_000, 1_000]);
        assert_eq!(policy.backoff_after_ms(u32::MAX), 1_000);
    }
}
