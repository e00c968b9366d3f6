//! When to look at the queue.

use longhaul_task::Timestamp;

/// The longest sleep while something is queued: another node may have left work behind.
const LOOK_MS_MAX: u64 = 5_000;

/// The shortest time between two looks that found something to claim. Perhaps every worker of that tool is taken and
/// another tool's tasks are not to be started yet, or the store cannot be written to: then each offer leads to a claim
/// that gets nothing, and each of those to the next look.
const LOOK_MS_MIN: u64 = 50;

/// What follows from a look at the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueDecision {
    /// Something may be claimed now: offer it to every tool.
    pub offer: bool,
    /// How long not to look again, whatever happens.
    pub pause_ms: u64,
    /// How long to sleep from then on, unless there is something to look at.
    pub sleep_ms: u64,
}

/// Decides on what a look at the queue found: when the earliest queued task may be claimed.
pub fn decide_queue(now: Timestamp, next_queued: Option<Timestamp>) -> QueueDecision {
    match next_queued {
        Some(at) if at <= now => QueueDecision { offer: true, pause_ms: LOOK_MS_MIN, sleep_ms: LOOK_MS_MAX },
        Some(at) => QueueDecision { offer: false, pause_ms: 0, sleep_ms: at.ms_since(now).min(LOOK_MS_MAX) },
        None => QueueDecision { offer: false, pause_ms: 0, sleep_ms: LOOK_MS_MAX },
    }
}
