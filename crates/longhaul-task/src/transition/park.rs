use crate::{Change, OnCrash, Phase, Refused, Task, Timestamp};

/// The attempt gives up its memory while it waits: what it did is recorded, and a later attempt will resume it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Park {
    /// The attempt's fence.
    pub fence: u64,
    /// When to go on without being woken.
    pub wake_at: Option<Timestamp>,
}

pub(super) fn apply(task: &Task, event: &Park, now: Timestamp) -> Result<Change, Refused> {
    task.must_hold(event.fence)?;
    if task.policy.on_crash != OnCrash::Resume {
        return Err(Refused::NotResumable);
    }
    let mut next = task.touched(now);
    next.fence += 1;
    next.phase = match &task.phase {
        Phase::Waiting { questions, .. } => Phase::Waiting { run: None, questions: questions.clone() },
        _ => Phase::Parked { wake_at: event.wake_at },
    };
    Ok(Change::of(next))
}
