//! All states that the disk has made durable. The laws compare everything else with them.

use std::sync::Arc;

use foldhash::HashMap;
use longhaul_task::{Task, TaskKey, Timestamp};

use crate::ledger::{Entry, Fact, Rules, short};

/// Every state that was ever durable.
#[derive(Debug, Default)]
pub(super) struct DurableStates {
    pub(super) line: usize,
    /// The store's time of the line.
    pub(super) at: Timestamp,
    pub(super) rules: Option<Rules>,
    pub(super) lives: HashMap<TaskKey, Vec<Life>>,
}

/// A task from its creation to its deletion. If the requestor chooses the ID, another life can follow under the same
/// ID.
#[derive(Debug)]
pub(super) struct Life {
    /// The state of revision 1 comes first.
    pub(super) states: Vec<Arc<Task>>,
    /// The line that created it.
    pub(super) created_at: usize,
    /// The line that deleted it.
    pub(super) deleted_at: Option<usize>,
}

impl Life {
    pub(super) fn last(&self) -> Option<&Arc<Task>> {
        self.states.last()
    }

    pub(super) fn at(&self, revision: u64) -> Option<&Arc<Task>> {
        self.states.get(usize::try_from(revision).ok()?.checked_sub(1)?)
    }
}

impl DurableStates {
    pub(super) fn take(&mut self, line: usize, entry: &Entry) -> Result<(), String> {
        (self.line, self.at) = (line, entry.at);
        match &entry.fact {
            Fact::Rules(rules) => self.rules = Some(rules.clone()),
            Fact::Committed(commit) => {
                for written in &commit.written {
                    self.write(&written.key, written.after.as_ref())
                        .map_err(|what| format!("{} {}: {what}", written.event, short(&written.key)))?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn write(&mut self, key: &TaskKey, after: Option<&Arc<Task>>) -> Result<(), String> {
        let lives = self.lives.entry(key.clone()).or_default();
        let now = lives.last_mut().filter(|life| life.deleted_at.is_none());
        match (now, after) {
            (Some(life), Some(task)) => {
                let expected = life.states.len() as u64 + 1;
                if task.revision != expected {
                    return Err(format!("revision {} follows {}", task.revision, expected - 1));
                }
                life.states.push(Arc::clone(task));
            }
            (Some(life), None) => life.deleted_at = Some(self.line),
            (None, Some(task)) if task.revision == 1 => {
                lives.push(Life { states: vec![Arc::clone(task)], created_at: self.line, deleted_at: None });
            }
            (None, Some(task)) => return Err(format!("a task begins with revision {}", task.revision)),
            (None, None) => return Err("a task is deleted that is not there".into()),
        }
        Ok(())
    }

    /// The life that a task has now.
    pub(super) fn alive(&self, key: &TaskKey) -> Option<&Life> {
        self.lives.get(key)?.last().filter(|life| life.deleted_at.is_none())
    }

    /// The task as it is durable now.
    pub(super) fn now(&self, key: &TaskKey) -> Option<&Arc<Task>> {
        self.alive(key)?.last()
    }

    /// The number of the life that a state belongs to, counted from 1. One commit can end a life and begin the next.
    pub(super) fn life(&self, task: &Arc<Task>) -> usize {
        let lives = self.lives.get(&task.key).map_or(&[][..], Vec::as_slice);
        let of = |life: &Life| life.at(task.revision).is_some_and(|state| Arc::ptr_eq(state, task));
        lives.iter().rposition(of).map_or(0, |index| index + 1)
    }

    /// The previous state in the same life.
    pub(super) fn before(&self, task: &Arc<Task>) -> Option<&Arc<Task>> {
        let index = self.life(task).checked_sub(1)?;
        self.lives.get(&task.key)?.get(index)?.at(task.revision.checked_sub(1)?)
    }

    /// Every life that a key has had.
    pub(super) fn lives(&self, key: &TaskKey) -> impl Iterator<Item = &Life> {
        self.lives.get(key).into_iter().flatten()
    }

    /// Every task that is durable now.
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<Task>> {
        self.lives.values().filter_map(|lives| lives.last().filter(|life| life.deleted_at.is_none())?.last())
    }
}

pub(super) fn is_queued(task: &Task) -> bool {
    task.phase.not_before().is_some()
}

#[cfg(test)]
mod tests {
    use crate::check::test_ledger::{TestLedger, key};

    #[test]
    fn a_revision_that_is_skipped_is_caught() {
        let (mut ledger, mut created) = TestLedger::with_task();
        created.revision = 3;
        ledger.commit("report", &key("a"), Some(created));
        ledger.assert_breaks("every change is counted");
    }
}
