use crate::{Change, Effect, Phase, Refused, Task, Timestamp};

/// The attempt hands the task back unfinished: it failed in a way worth another try, or its node is leaving.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// The attempt's fence.
    pub fence: u64,
    /// How long nobody should take it.
    pub wait_ms: u64,
}

pub(super) fn apply(task: &Task, event: &Release, now: Timestamp) -> Result<Change, Refused> {
    task.must_hold(event.fence)?;
    Ok(requeue(task, event.wait_ms, now))
}

/// Puts a task whose attempt is over back into the queue. Its open questions go with the attempt: the next one asks
/// its own, under new keys.
pub(super) fn requeue(task: &Task, wait_ms: u64, now: Timestamp) -> Change {
    let mut next = task.touched(now);
    next.fence += 1;
    let not_before = next.updated_at.plus_ms(wait_ms);
    next.phase = Phase::Queued { not_before };
    Change::of(next).with(Effect::Queued { not_before })
}
