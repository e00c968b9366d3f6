use foldhash::{HashMap, HashSet};
use longhaul_task::{EntryKind, JournalPosition, Outcome, TaskKey};

use super::Law;
use super::durable_states::DurableStates;
use crate::ledger::{Commit, Fact, short};

/// A handler whose forks were renamed does not return a result if an earlier attempt has recorded entries in them.
#[derive(Default)]
pub(super) struct RenameLaw {
    /// The positions of the entries of tasks that resume, and the attempt that wrote each.
    recorded: HashMap<TaskKey, Vec<(JournalPosition, u32)>>,
    /// Attempts that have left out entries of earlier ones.
    changed: HashSet<(TaskKey, u32)>,
}

impl Law for RenameLaw {
    fn statement(&self) -> &'static str {
        "a handler that has changed returns no result"
    }

    fn observe(&mut self, states: &DurableStates, fact: &Fact) -> Result<(), String> {
        match fact {
            Fact::Committed(commit) => {
                self.record(commit)?;
                self.settle(states, commit)
            }
            Fact::Renamed { key, attempt, forks } => {
                let is_left_out = |(position, by): &(JournalPosition, u32)| {
                    by < attempt && forks.iter().any(|fork| position.is_in_fork(fork))
                };
                // If several tasks have had the key, the fact does not say to which of them the handler belongs.
                let is_only_life = states.lives(key).count() == 1;
                if is_only_life && self.recorded.get(key).is_some_and(|all| all.iter().any(is_left_out)) {
                    self.changed.insert((key.clone(), *attempt));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

impl RenameLaw {
    fn record(&mut self, commit: &Commit) -> Result<(), String> {
        for recorded in commit.recorded.iter().filter(|recorded| recorded.epoch == 0 && recorded.life == 1) {
            let (key, entry) = (&recorded.key, &recorded.entry);
            self.recorded.entry(key.clone()).or_default().push((entry.position.clone(), entry.attempt));
            let returned = recorded.output().filter(|_| entry.kind == EntryKind::Return);
            let outcome = returned.and_then(|output| serde_json::from_str(output.as_str()).ok());
            self.check(key, entry.attempt, outcome.as_ref())?;
        }
        Ok(())
    }

    fn settle(&self, states: &DurableStates, commit: &Commit) -> Result<(), String> {
        for task in commit.written.iter().filter(|written| written.event == "settle") {
            let Some(task) = task.after.as_ref().filter(|task| states.life(task) == 1) else { continue };
            self.check(&task.key, task.attempt, task.phase.outcome())?;
        }
        Ok(())
    }

    fn check(&self, key: &TaskKey, attempt: u32, outcome: Option<&Outcome>) -> Result<(), String> {
        if matches!(outcome, Some(Outcome::Result { .. })) && self.changed.contains(&(key.clone(), attempt)) {
            return Err(format!("attempt {attempt} of {} renamed its forks and returned {outcome:?}", short(key)));
        }
        Ok(())
    }
}
