use std::sync::Arc;

use foldhash::HashMap;
use longhaul_task::{EntryKind, Task, TaskKey};

use super::Law;
use super::durable_states::DurableStates;
use super::journal::child_key;
use crate::ledger::{Commit, Fact, WrittenEntry, short};

/// A parent settles after its children, a child exists exactly as long as its parent, and the children of a lost race have
/// ended before the handler goes on.
#[derive(Default)]
pub(super) struct FamilyLaw {
    /// The subtasks of each task, with the forks that created them.
    subtasks: HashMap<TaskKey, Vec<(String, TaskKey)>>,
}

impl Law for FamilyLaw {
    fn statement(&self) -> &'static str {
        "families live and die together"
    }

    fn observe(&mut self, states: &DurableStates, fact: &Fact) -> Result<(), String> {
        let commit = match fact {
            Fact::Committed(commit) => commit,
            Fact::Raced { key, attempt, lost } => return self.lost(states, key, *attempt, lost),
            _ => return Ok(()),
        };
        for recorded in commit.recorded.iter().filter(|recorded| recorded.entry.kind == EntryKind::Subtask) {
            if let Some(child) = recorded.output().and_then(|id| child_key(&recorded.key, &id)) {
                let fork = recorded.entry.position.fork.to_string();
                self.subtasks.entry(recorded.key.clone()).or_default().push((fork, child));
            }
        }
        states.all().try_for_each(|task| child(states, task))?;
        recorded(commit)?;
        commit
            .written
            .iter()
            .filter_map(|written| written.after.as_ref())
            .try_for_each(|task| starts_over(states, task))
    }
}

impl FamilyLaw {
    fn lost(&self, states: &DurableStates, key: &TaskKey, attempt: u32, lost: &str) -> Result<(), String> {
        // An attempt that has lost its task may still run.
        if states.now(key).is_none_or(|task| task.attempt != attempt || task.phase.active_attempt().is_none()) {
            return Ok(());
        }
        let is_lost = |fork: &str| fork.strip_prefix(lost).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        let mut children = self.subtasks.get(key).into_iter().flatten().filter(|(fork, _)| is_lost(fork));
        match children.find(|(_, child)| states.now(child).is_some_and(|child| !child.is_settled())) {
            Some((_, child)) => Err(format!("{} goes on, and its lost race left {} open", short(key), short(child))),
            None => Ok(()),
        }
    }
}

/// A child and its entry in the journal of its parent are written in the same commit.
fn recorded(commit: &Commit) -> Result<(), String> {
    let is_subtask = |recorded: &&WrittenEntry| recorded.entry.kind == EntryKind::Subtask;
    let mut entries: Vec<_> = commit
        .recorded
        .iter()
        .filter(is_subtask)
        .map(|recorded| recorded.output().and_then(|id| child_key(&recorded.key, &id)))
        .collect();
    let children = commit.written.iter().filter(|written| written.is_birth());
    for child in children.filter_map(|written| written.after.as_ref()).filter(|task| !task.is_root()) {
        match entries.iter().position(|key| key.as_ref() == Some(&child.key)) {
            Some(index) => drop(entries.swap_remove(index)),
            None => return Err(format!("{} is in no journal", short(&child.key))),
        }
    }
    match entries.first() {
        Some(key) => Err(format!("a subtask was recorded and not created: {key:?}")),
        None => Ok(()),
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

#[cfg(test)]
mod tests {
    use longhaul_task::Event;
    use longhaul_task::transition::Delete;

    use crate::check::test_ledger::{TestLedger, cancel, family, spawn};

    #[test]
    fn a_child_that_is_in_no_journal_is_caught() {
        let (mut ledger, parent) = TestLedger::with_task();
        spawn(&mut ledger, &parent, false);
        ledger.assert_breaks("families live and die together");
    }

    #[test]
    fn a_parent_that_ends_before_its_child_is_caught() {
        let (mut ledger, parent, _) = family();
        ledger.assert_holds();
        ledger.apply(&parent, &cancel());
        ledger.assert_breaks("families live and die together");
    }

    #[test]
    fn a_child_that_outlives_its_family_is_caught() {
        let (mut ledger, parent, child) = family();
        ledger.apply(&child, &cancel());
        let ended = ledger.apply(&parent, &cancel());
        ledger.assert_holds();
        ledger.apply(&ended, &Event::Delete(Delete));
        ledger.assert_breaks("families live and die together");
    }
}
