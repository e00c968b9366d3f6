//! When to look at the queue, and when to offer its tasks to the tools.

use longhaul_task::Timestamp;

/// The longest time between two looks. Work that another node has left in the queue is found after this time.
const LOOK_MS_MAX: u64 = 5_000;

/// The shortest time between a look that found a task to claim and the next look. Such a look makes every tool with a free
/// worker try a claim. A claim that returns no task, because the tool's own tasks are delayed or the store cannot write,
/// requests the next look. Without the pause looks and claims would follow each other in a loop.
const LOOK_MS_MIN: u64 = 50;

/// What the engine does after a look at the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueDecision {
    /// Whether a task may be claimed now, so that every tool is to try.
    pub offer: bool,
    /// How long to wait in any case.
    pub pause_ms: u64,
    /// How long to sleep after the pause, unless a change of the queue ends the sleep.
    pub sleep_ms: u64,
}

/// Decides what to do after a look. `next_queued` is the time from which the earliest queued task may be claimed.
pub fn decide_queue(now: Timestamp, next_queued: Option<Timestamp>) -> QueueDecision {
    match next_queued {
        Some(at) if at <= now => QueueDecision { offer: true, pause_ms: LOOK_MS_MIN, sleep_ms: LOOK_MS_MAX },
        Some(at) => QueueDecision { offer: false, pause_ms: 0, sleep_ms: at.ms_since(now).min(LOOK_MS_MAX) },
        None => QueueDecision { offer: false, pause_ms: 0, sleep_ms: LOOK_MS_MAX },
    }
}
