//! One file per transition, and [`apply`], which calls the one for an event.

mod abandon;
mod answer;
mod ask;
mod cancel;
mod claim;
mod create;
mod delete;
mod expire;
mod lose;
mod overdue;
mod park;
mod release;
mod renew;
mod report;
mod settle;
mod shorten;
mod spawn;
mod time_out;
mod wake;

pub use abandon::Abandon;
pub use answer::AnswerQuestion;
pub use ask::AskQuestion;
pub use cancel::Cancel;
pub use claim::Claim;
pub use create::{Create, create};
pub use delete::Delete;
pub use expire::Expire;
pub use lose::Lose;
pub use overdue::Overdue;
pub use park::Park;
pub use release::Release;
pub use renew::Renew;
pub use report::Report;
pub use settle::Settle;
pub use shorten::Shorten;
pub use spawn::{NewChild, Spawn};
pub use time_out::TimeOut;
pub use wake::Wake;

use crate::{Change, ChildRange, Effect, Event, Outcome, Phase, Surroundings, Task, Timestamp, TransitionError};

/// Applies an event to a task: `(task, event, now) -> task' + effects`, or the reason why it is refused.
pub fn apply(
    task: &Task,
    event: &Event,
    surroundings: &Surroundings,
    now: Timestamp,
) -> Result<Change, TransitionError> {
    match event {
        Event::Claim(event) => claim::apply(task, event, now),
        Event::Report(event) => report::apply(task, event, now),
        Event::Ask(event) => ask::apply(task, event, now),
        Event::Answer(event) => answer::apply(task, event, now),
        Event::TimeOut(event) => time_out::apply(task, event, now),
        Event::Abandon(event) => abandon::apply(task, event, now),
        Event::Spawn(event) => spawn::apply(task, event, now),
        Event::Park(event) => park::apply(task, event, surroundings, now),
        Event::Wake(event) => wake::apply(task, event, now),
        Event::Release(event) => release::apply(task, event, surroundings, now),
        Event::Settle(event) => settle::apply(task, event, surroundings, now),
        Event::Cancel(event) => cancel::apply(task, event, surroundings, now),
        Event::Lose(event) => lose::apply(task, event, surroundings, now),
        Event::Overdue(event) => overdue::apply(task, event, surroundings, now),
        Event::Shorten(event) => shorten::apply(task, event, now),
        Event::Renew(event) => renew::apply(task, event, now),
        Event::Expire(event) => expire::apply(task, event, now),
        Event::Delete(event) => delete::apply(task, event, now),
    }
}

/// Ends a task. No other function makes a phase `Settled`.
fn end(task: &Task, outcome: Outcome, now: Timestamp) -> Change {
    let mut next = task.next_revision(now);
    next.message = match &outcome {
        Outcome::Error(fault) => Some(crate::task::cut_message(&fault.message)),
        Outcome::Result { .. } | Outcome::Cancelled => task.message.clone(),
    };
    next.phase = Phase::Settled { outcome, at: next.updated_at, last_attempt: task.phase.active_attempt() };
    let was_queued = task.phase.not_before().is_some();
    let settled = Effect::Settled { key: task.key.clone(), tool: task.tool.clone(), was_queued };
    // Most ends have this effect alone. A vector that grows would allocate room for four.
    Change { effects: vec![settled], ..Change::new(next) }
}

/// Ends a task and its open descendants by an event that no attempt of theirs has sent: the descendants are cancelled, and
/// every attempt loses its right to write.
fn end_family(task: &Task, outcome: Outcome, surroundings: &Surroundings, now: Timestamp) -> Change {
    let mut change = end_and_raise_fence(task, outcome, now);
    end_descendants(&mut change, surroundings, now);
    wake_parent(&mut change, surroundings, now);
    change
}

fn end_descendants(change: &mut Change, surroundings: &Surroundings, now: Timestamp) {
    for descendant in surroundings.open_descendants.iter().filter(|task| !task.is_settled()) {
        let ended = end_and_raise_fence(descendant, Outcome::Cancelled, now);
        change.relatives.push(ended.task);
        change.effects.extend(ended.effects);
    }
}

/// Wakes a parent that waits for its children, if the last one of a range has ended. This must happen in the commit that
/// ends the child: after a crash between two commits nothing would wake the parent.
fn wake_parent(change: &mut Change, surroundings: &Surroundings, now: Timestamp) {
    let ordinal = change.task.family.ordinal;
    let was_last = |range: &ChildRange| range.contains(ordinal) && !surroundings.open_siblings.contains(range);
    let parent = surroundings.parent.as_ref().filter(|parent| parent.awaited_children().iter().any(was_last));
    if let Some(parent) = parent {
        let woken = wake::wake(parent, now);
        change.relatives.push(woken.task);
        change.effects.extend(woken.effects);
    }
}

fn end_and_raise_fence(task: &Task, outcome: Outcome, now: Timestamp) -> Change {
    let mut change = end(task, outcome, now);
    change.task.fence += 1;
    match stop_effect(task) {
        Some(effect) => change.with_effect(effect),
        None => change,
    }
}

/// Tells the node that holds the task to stop the attempt.
fn stop_effect(task: &Task) -> Option<Effect> {
    let attempt = task.phase.active_attempt()?;
    Some(Effect::Stop { key: task.key.clone(), node: attempt.node, fence: task.fence })
}
