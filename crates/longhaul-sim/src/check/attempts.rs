use std::sync::Arc;

use foldhash::{HashMap, HashSet};
use longhaul_task::{AttemptEnd, Task, TaskKey};

use super::Law;
use super::durable_states::DurableStates;
use crate::ledger::{Commit, Fact, short};

/// Every attempt that ended before its task has one record, and the failed attempts in a row are counted.
#[derive(Default)]
pub(super) struct AttemptLaw {
    /// The attempts that have written journal entries, by task and number of its life.
    writers: HashSet<(TaskKey, usize, u32)>,
}

impl Law for AttemptLaw {
    fn statement(&self) -> &'static str {
        "every attempt is counted and recorded"
    }

    fn observe(&mut self, states: &DurableStates, fact: &Fact) -> Result<(), String> {
        let Fact::Committed(commit) = fact else { return Ok(()) };
        for recorded in &commit.recorded {
            self.writers.insert((recorded.key.clone(), recorded.life, recorded.entry.attempt));
        }
        let mut ended: HashMap<(&TaskKey, u32), usize> = HashMap::default();
        for task in commit.written.iter().filter_map(|written| written.after.as_ref()) {
            let Some(before) = states.before(task) else { continue };
            let is_over = before.phase.active_attempt().is_some()
                && (task.phase.active_attempt().is_none() || task.attempt != before.attempt);
            if is_over && !task.is_settled() {
                *ended.entry((&task.key, before.attempt)).or_default() += 1;
                self.count(states, commit, before, task)?;
            } else if task.failed_attempts != before.failed_attempts {
                return Err(format!("{} counts an attempt that did not end", short(&task.key)));
            }
        }
        for (key, record) in &commit.ended {
            match ended.get_mut(&(key, record.attempt)) {
                Some(count) if *count > 0 => *count -= 1,
                _ => return Err(format!("{} has a record of attempt {} too many", short(key), record.attempt)),
            }
        }
        match ended.into_iter().find(|(_, count)| *count > 0) {
            Some(((key, attempt), _)) => Err(format!("{} has no record of attempt {attempt}", short(key))),
            None => Ok(()),
        }
    }
}

impl AttemptLaw {
    fn count(&self, states: &DurableStates, commit: &Commit, before: &Task, after: &Arc<Task>) -> Result<(), String> {
        let of = |(key, record): &&(TaskKey, longhaul_task::AttemptRecord)| {
            *key == before.key && record.attempt == before.attempt
        };
        let Some((_, record)) = commit.ended.iter().find(of) else { return Ok(()) };
        let got_further =
            before.resumes() && self.writers.contains(&(before.key.clone(), states.life(after), before.attempt));
        let expected = match record.end {
            AttemptEnd::Stopped if got_further => 0,
            AttemptEnd::Parked | AttemptEnd::Returned | AttemptEnd::Stopped => before.failed_attempts,
            AttemptEnd::Lost if got_further => 1,
            AttemptEnd::Lost | AttemptEnd::Released(_) => before.failed_attempts + 1,
        };
        if after.failed_attempts == expected {
            return Ok(());
        }
        let (key, counted) = (short(&after.key), after.failed_attempts);
        Err(format!("{key} counts {counted} failed attempts instead of {expected} after {:?}", record.end))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use longhaul_task::transition::Lose;
    use longhaul_task::{EntryKind, Event, Surroundings, Task, transition};

    use crate::check::test_ledger::{TestLedger, done, entry, key, node, release, resumed};
    use crate::ledger::{Commit, Fact, WrittenTask};

    #[test]
    fn an_attempt_without_a_record_is_caught() {
        let (mut ledger, created) = TestLedger::with_task();
        let released = ledger.after(&created, &release(1));
        ledger.commit("release", &key("a"), Some(released));
        ledger.assert_breaks("every attempt is counted and recorded");
    }

    #[test]
    fn a_count_of_failed_attempts_that_does_not_begin_again_is_caught() {
        let (mut ledger, task) = resumed();
        ledger.record_entry(&key("a"), 0, entry(EntryKind::Step, 0, done("1")));
        let mut task = task;
        task.failed_attempts = 1;
        task.revision = 2;
        let lose = Event::Lose(Lose { node: node(), fence: 1, is_stop: false });
        let change = transition::apply(&task, &lose, &Surroundings::default(), ledger.now).unwrap();
        let after = Task { revision: 2, failed_attempts: 2, ..change.task };
        let written =
            vec![WrittenTask { event: "lose", key: key("a"), after: Some(Arc::new(after)), idempotency: None }];
        let ended = vec![(key("a"), change.ended_attempt.unwrap())];
        ledger.note(Fact::Committed(Commit { now: ledger.now, written, recorded: Vec::new(), ended }));
        ledger.assert_breaks("every attempt is counted and recorded");
    }
}
