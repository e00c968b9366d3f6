//! What time alone does to a task.

use longhaul_task::transition::{Expire, Overdue, Wake};
use longhaul_task::{Event, Phase, Task, Timestamp};

/// The event that a task which is due wants; `None` when it changed meanwhile and is due no more.
pub fn due_event(task: &Task, now: Timestamp) -> Option<Event> {
    if task.due_at().is_none_or(|due_at| now < due_at) {
        return None;
    }
    let wake_at = task.phase.wake_condition().and_then(|rest| rest.wake_at());
    Some(match (&task.phase, wake_at) {
        (Phase::Settled { .. }, _) => Event::Expire(Expire),
        (_, Some(wake_at)) if task.deadline().is_some_and(|deadline| wake_at < deadline) => {
            Event::Wake(Wake { fence: task.fence })
        }
        _ => Event::Overdue(Overdue),
    })
}
