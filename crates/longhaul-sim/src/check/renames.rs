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

#[cfg(test)]
mod tests {
    use longhaul_task::{EntryKind, JournalEntry, JournalPosition, Json, Outcome};

    use crate::check::check;
    use crate::check::test_ledger::{TestLedger, done, entry, key};
    use crate::ledger::Fact;

    #[test]
    fn a_result_of_a_handler_with_renamed_forks_is_caught() {
        // An entry of an earlier attempt in a renamed fork, of the same attempt, and in another fork.
        for (fork, attempt, is_changed) in
            [("0-0l", 1, true), ("0-0l/1-0r", 1, true), ("0-0l", 2, false), ("", 1, false)]
        {
            let (mut ledger, _) = TestLedger::with_task();
            let position = JournalPosition { fork: fork.into(), seq: 0 };
            let recorded = JournalEntry { position, attempt, ..entry(EntryKind::Step, 0, done("1")) };
            ledger.record_entry(&key("a"), 0, recorded);
            ledger.note(Fact::Renamed { key: key("a"), attempt: 2, forks: ["0-0l".to_owned(), "0-0r".to_owned()] });
            let outcome = Outcome::Result { body: Json::from_text("1"), is_error: false };
            let output = serde_json::to_string(&outcome).unwrap();
            let returned = JournalEntry { attempt: 2, ..entry(EntryKind::Return, 7, done(&output)) };
            ledger.record_entry(&key("a"), 0, returned);
            if is_changed {
                ledger.assert_breaks("a handler that has changed returns no result");
            } else {
                let broken = check(&ledger.lines).err();
                assert!(
                    broken.is_none_or(|broken| broken.law != "a handler that has changed returns no result"),
                    "{fork}"
                );
            }
        }
    }
}
