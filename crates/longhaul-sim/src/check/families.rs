use std::sync::Arc;

use longhaul_task::{Task, TaskKey};

use super::Law;
use super::durable_states::DurableStates;
use crate::ledger::{Fact, short};

/// A parent settles after its children, and a child exists exactly as long as its parent.
pub(super) struct FamilyLaw;

impl Law for FamilyLaw {
    fn statement(&self) -> &'static str {
        "families live and die together"
    }

    fn observe(&mut self, states: &DurableStates, fact: &Fact) -> Result<(), String> {
        let Fact::Committed(commit) = fact else { return Ok(()) };
        states.all().try_for_each(|task| child(states, task))?;
        commit
            .written
            .iter()
            .filter_map(|written| written.after.as_ref())
            .try_for_each(|task| starts_over(states, task))
    }
}

/// When the handler starts over, no child of the lost attempt stays open: the next attempt would not know it.
fn starts_over(states: &DurableStates, task: &Arc<Task>) -> Result<(), String> {
    let before = states.before(task);
    let lost =
        before.is_some_and(|before| before.phase.active_attempt().is_some()) && task.phase.not_before().is_some();
    if task.resumes() || !lost || states.now(&task.key).is_none_or(|now| !Arc::ptr_eq(now, task)) {
        return Ok(());
    }
    let is_child = |it: &&Arc<Task>| {
        (&it.key.owner, it.family.parent.as_ref()) == (&task.key.owner, Some(&task.key.id)) && !it.is_settled()
    };
    match states.all().find(is_child) {
        Some(child) => Err(format!("{} starts over and {} is still open", short(&task.key), short(&child.key))),
        None => Ok(()),
    }
}

fn child(states: &DurableStates, task: &Task) -> Result<(), String> {
    let Some(parent) = &task.family.parent else { return Ok(()) };
    let key = TaskKey { owner: task.key.owner.clone(), id: parent.clone() };
    match states.now(&key) {
        None => Err(format!("{} is there without its parent", short(&task.key))),
        Some(parent) if parent.is_settled() && !task.is_settled() => {
            Err(format!("{} has ended before its child {}", short(&parent.key), short(&task.key)))
        }
        Some(parent) if parent.family.root != task.family.root => {
            Err(format!("{} is of another family than its parent", short(&task.key)))
        }
        Some(_) => Ok(()),
    }
}
