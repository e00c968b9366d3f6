//! The part of a tool's declaration that is stored with each task.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The name and version of a tool. A task is claimed only by a handler with both, so that a handler never replays the
/// journal of another version.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ToolRef {
    pub name: Arc<str>,
    pub version: Arc<str>,
}

impl ToolRef {
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
    /// The task fails with `CRASH_RECOVERY`. Safe for a tool whose effects must not happen twice.
    #[default]
    Fail,
    /// The handler runs again from the start.
    Retry,
    /// The handler runs again, and every operation in its journal returns what it returned before. While such a handler
    /// waits for an answer, a timer or a subtask, it is not in memory.
    Resume,
}

/// How a tool's tasks run. It is stored with each task, so that recovery works before the tool is registered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    pub on_crash: OnCrash,
    /// The maximum number of attempts, including the first. Attempts that ended because the handler slept or waited do
    /// not count.
    pub attempts_max: u32,
    /// The delay before the second attempt. It doubles with each further attempt.
    pub backoff_ms: u64,
    /// The maximum delay between two attempts.
    pub backoff_ms_max: u64,
    /// The maximum time for which a handler may run without waiting for an answer.
    pub running_ms_max: u64,
    /// The maximum time from a task's creation to its end, including the time in the queue and waiting.
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
    /// The delay before the next attempt after `failed_attempts` attempts have failed.
    pub fn backoff_after_ms(&self, failed_attempts: u32) -> u64 {
        let doublings = failed_attempts.saturating_sub(1).min(32);
        self.backoff_ms.saturating_mul(1 << doublings).min(self.backoff_ms_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_between_attempts_doubles_up_to_its_limit() {
        let policy = Policy { backoff_ms: 100, backoff_ms_max: 1_000, ..Policy::default() };
        let waits: Vec<u64> = (1..=6).map(|attempt| policy.backoff_after_ms(attempt)).collect();
        assert_eq!(waits, [100, 200, 400, 800, 1_000, 1_000]);
        assert_eq!(policy.backoff_after_ms(u32::MAX), 1_000);
    }
}
