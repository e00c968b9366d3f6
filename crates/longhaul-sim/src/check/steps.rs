use std::collections::BTreeSet;

use foldhash::{HashMap, HashSet};
use longhaul_task::{EntryState, JournalPosition, TaskKey};

use super::Law;
use super::durable_states::DurableStates;
use crate::ledger::{Fact, short};

/// The work of a step is done again only if its end was not recorded. It begins only when everything that its handler did
/// before is recorded. This holds for tools that resume.
#[derive(Default)]
pub(super) struct StepLaw {
    /// The positions that have ended, by task, number of its life and fork.
    ended: HashMap<(TaskKey, usize, String), BTreeSet<u32>>,
    /// Whether the last try of each step in one attempt succeeded.
    worked: HashMap<(TaskKey, usize, u32, JournalPosition), bool>,
    /// Steps whose last failure is recorded.
    failures: HashSet<(TaskKey, usize, JournalPosition)>,
}

impl Law for StepLaw {
    fn statement(&self) -> &'static str {
        "a step is done once unless a crash comes before its record"
    }

    fn observe(&mut self, states: &DurableStates, fact: &Fact) -> Result<(), String> {
        match fact {
            Fact::Committed(commit) => {
                for recorded in commit.recorded.iter().filter(|recorded| recorded.epoch == 0) {
                    let position = &recorded.entry.position;
                    let of = (recorded.key.clone(), recorded.life, position.fork.to_string());
                    if let EntryState::Retrying(_) = recorded.entry.state {
                        self.failures.insert((of.0, of.1, position.clone()));
                    } else if recorded.output().is_some() {
                        self.ended.entry(of).or_default().insert(position.seq);
                    }
                }
                Ok(())
            }
            Fact::Effect { key, attempt, epoch: 0, position, succeeds } => {
                // An attempt that has lost its task may still work.
                let holds =
                    |task: &longhaul_task::Task| task.attempt == *attempt && task.phase.active_attempt().is_some();
                if !states.now(key).is_some_and(|task| holds(task)) {
                    return Ok(());
                }
                let life = states.lives(key).count();
                // A late handler of a deleted task may work while a new task has its ID. The fact does not say whose work it
                // is, so only the work of the first task with an ID is checked.
                if life > 1 {
                    return Ok(());
                }
                self.is_due(key, life, position).map_err(|what| format!("{} {position:?}: {what}", short(key)))?;
                let of = (key.clone(), life, *attempt, position.clone());
                let is_recorded = self.failures.remove(&(key.clone(), life, position.clone()));
                match self.worked.insert(of, *succeeds) {
                    Some(true) => Err(format!("{} {position:?}: the work succeeded twice in one attempt", short(key))),
                    Some(false) if !is_recorded => {
                        Err(format!("{} {position:?}: tried again before the failure was recorded", short(key)))
                    }
                    Some(false) | None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }
}

impl StepLaw {
    fn has_ended(&self, key: &TaskKey, life: usize, fork: &str, seq: u32) -> bool {
        self.ended.get(&(key.clone(), life, fork.to_owned())).is_some_and(|ended| ended.contains(&seq))
    }

    /// Fails if the work of a step may not begin now.
    fn is_due(&self, key: &TaskKey, life: usize, position: &JournalPosition) -> Result<(), String> {
        if self.has_ended(key, life, &position.fork, position.seq) {
            return Err("the work of a recorded step was done again".into());
        }
        // The key of a fork begins with the position of the next operation of its parent branch.
        let mut parent = String::new();
        for name in position.fork.split('/').filter(|name| !name.is_empty()) {
            let next = name.split([':', '-']).next().and_then(|seq| seq.parse().ok()).unwrap_or(0);
            self.all_before(key, life, &parent, next)?;
            parent = if parent.is_empty() { name.to_owned() } else { format!("{parent}/{name}") };
        }
        self.all_before(key, life, &position.fork, position.seq)
    }

    fn all_before(&self, key: &TaskKey, life: usize, fork: &str, seq: u32) -> Result<(), String> {
        match (0..seq).find(|before| !self.has_ended(key, life, fork, *before)) {
            Some(before) => Err(format!("its work began before {before} of {fork:?} was recorded")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use longhaul_task::EntryKind;

    use crate::check::test_ledger::{done, entry, key, resumed};

    #[test]
    fn a_recorded_step_that_is_done_again_is_caught() {
        let (mut ledger, _) = resumed();
        ledger.effect("a", 0, true);
        ledger.record_entry(&key("a"), 0, entry(EntryKind::Step, 0, done("1")));
        ledger.assert_holds();
        ledger.effect("a", 0, true);
        ledger.assert_breaks("a step is done once unless a crash comes before its record");
    }

    #[test]
    fn a_step_that_begins_before_the_last_one_is_recorded_is_caught() {
        let (mut ledger, _) = resumed();
        ledger.effect("a", 0, true);
        ledger.effect("a", 1, true);
        ledger.assert_breaks("a step is done once unless a crash comes before its record");
    }

    #[test]
    fn a_try_that_begins_before_the_failure_is_recorded_is_caught() {
        let (mut ledger, _) = resumed();
        ledger.effect("a", 0, false);
        ledger.effect("a", 0, true);
        ledger.assert_breaks("a step is done once unless a crash comes before its record");
    }
}
