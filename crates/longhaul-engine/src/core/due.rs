//! What time alone does to a task.

use longhaul_task::transition::{Expire, Overdue, Wake};
use longhaul_task::{Event, Phase, Task, Timestamp};

/// The event that a task which is due wants; `None` when it changed meanwhile and is due no more.
pub fn due_event(task: &Task, now: Timestamp) -> Option<Event> {
    if task.due_at().is_none_or(|due_at| now < due_at) {
        return None;
    }
    Some(match task.phase {
        Phase::Settled { .. } => Event::Expire(Expire),
        Phase::Parked { wake_at: Some(wake_at) } if task.deadline().is_some_and(|deadline| wake_at < deadline) => {
            Event::Wake(Wake)
        }
        _ => Event::Overdue(Overdue),
    })
}
