use foldhash::HashMap;
use longhaul_task::{EntryKind, Outcome, TaskKey};

use super::Law;
use super::durable_states::DurableStates;
use crate::ledger::{Commit, Fact, short};

/// A handler that returned before the children of its task had ended does not run again and has no open question. Its task
/// settles with the outcome that the handler returned.
#[derive(Default)]
pub(super) struct ReturnLaw {
    /// The attempt that returned, and its outcome, by task and by the number of the task's life: the key of a deleted task
    /// can be used again.
    returned: HashMap<(TaskKey, usize), (u32, Outcome)>,
}

impl Law for ReturnLaw {
    fn statement(&self) -> &'static str {
        "what a handler returned before its children is kept"
    }

    fn observe(&mut self, states: &DurableStates, fact: &Fact) -> Result<(), String> {
        match fact {
            Fact::Committed(commit) => {
                self.settle(states, commit)?;
                self.record(states, commit)
            }
            Fact::Started { key, attempt } => {
                let life = states.lives(key).count();
                // If several tasks have had the key, the fact does not say to which of them the handler belongs.
                match self.returned.get(&(key.clone(), life)).filter(|_| life == 1) {
                    Some((returned, _)) if attempt > returned => {
                        Err(format!("{} returned in attempt {returned} and runs again", short(key)))
                    }
                    _ => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }
}

impl ReturnLaw {
    fn record(&mut self, states: &DurableStates, commit: &Commit) -> Result<(), String> {
        for recorded in commit.recorded.iter().filter(|recorded| recorded.entry.kind == EntryKind::Return) {
            let key = &recorded.key;
            let output = recorded.output().and_then(|output| serde_json::from_str(output.as_str()).ok());
            let Some(outcome) = output else { return Err(format!("{} returned no outcome", short(key))) };
            self.returned.insert((key.clone(), recorded.life), (recorded.entry.attempt, outcome));
            let task = states.lives(key).last().and_then(|life| life.last());
            if task.is_some_and(|task| task.phase.questions().is_some() || task.phase.active_attempt().is_some()) {
                return Err(format!("{} returned, and still has a question or an attempt", short(key)));
            }
        }
        Ok(())
    }

    fn settle(&self, states: &DurableStates, commit: &Commit) -> Result<(), String> {
        for written in commit.written.iter().filter(|written| written.event == "settle") {
            let Some(task) = written.after.as_ref() else { continue };
            let returned = self.returned.get(&(task.key.clone(), states.life(task)));
            if let (Some((_, returned)), Some(outcome)) = (returned, task.phase.outcome())
                && returned != outcome
            {
                return Err(format!("{} returned {returned:?} and ended with {outcome:?}", short(&task.key)));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use longhaul_task::{EntryKind, Outcome};

    use crate::check::test_ledger::{done, entry, key, parked};
    use crate::ledger::{Commit, Fact, WrittenEntry};

    #[test]
    fn a_handler_that_runs_again_after_it_has_returned_is_caught() {
        let (mut ledger, _, _) = parked();
        let outcome = serde_json::to_string(&Outcome::Cancelled).unwrap();
        let entry = entry(EntryKind::Return, 7, done(&outcome));
        let recorded = vec![WrittenEntry { key: key("a"), life: 1, epoch: 0, entry, replaces: false }];
        ledger.note(Fact::Committed(Commit { now: ledger.now, written: Vec::new(), recorded, ended: Vec::new() }));
        ledger.assert_holds();
        ledger.note(Fact::Started { key: key("a"), attempt: 2 });
        ledger.assert_breaks("what a handler returned before its children is kept");
    }
}
