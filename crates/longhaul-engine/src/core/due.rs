//! The event that a task gets when its due time has come.

use longhaul_task::transition::{Expire, Overdue, Renew, TimeOut, Wake};
use longhaul_task::{Event, Question, Task, Timestamp, WakeCondition};

/// The event to apply to a due task. `None` if the task is not due, because it has changed since it was found.
pub fn due_event(task: &Task, now: Timestamp) -> Option<Event> {
    if task.due_at().is_none_or(|due_at| now < due_at) {
        return None;
    }
    if task.is_settled() {
        return Some(Event::Expire(Expire));
    }
    if task.deadline().is_some_and(|deadline| deadline <= now) {
        return Some(Event::Overdue(Overdue));
    }
    let is_past_deadline =
        |question: &&Question| question.deadline.as_ref().is_some_and(|limit| limit.wait.until <= now);
    if let Some(question) = task.phase.questions().into_iter().flatten().find(is_past_deadline) {
        return Some(Event::TimeOut(TimeOut { key: question.key.clone() }));
    }
    let wake_at = task.phase.wake_condition().and_then(WakeCondition::wake_at);
    if wake_at.is_some_and(|wake_at| wake_at <= now) {
        return Some(Event::Wake(Wake { fence: task.fence }));
    }
    Some(Event::Renew(Renew))
}
