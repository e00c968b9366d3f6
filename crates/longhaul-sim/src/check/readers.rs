use std::sync::Arc;

use foldhash::HashMap;
use longhaul_store::Snapshot;
use longhaul_task::{Task, TaskKey};

use super::Law;
use super::durable_states::DurableStates;
use crate::ledger::{Fact, short};

/// Readers see only committed states, and never an older one after a newer one.
#[derive(Default)]
pub(super) struct ReaderLaw {
    /// By task: the lines of the ledger from which on a reader must see at least a certain life and revision.
    floors: HashMap<TaskKey, Vec<(usize, LifeRevision)>>,
}

/// The number of a life and a revision in it.
type LifeRevision = (usize, u64);

impl Law for ReaderLaw {
    fn statement(&self) -> &'static str {
        "readers see what is committed, in order"
    }

    fn observe(&mut self, states: &DurableStates, fact: &Fact) -> Result<(), String> {
        match fact {
            Fact::Acknowledged { key, revision, .. } => {
                let lives = states.lives.get(key).into_iter().flatten().enumerate();
                let life = lives.filter(|(_, life)| life.at(*revision).is_some()).map(|(life, _)| life).next();
                self.raise(states.line, key, (life.unwrap_or(0), *revision));
                Ok(())
            }
            Fact::Read { began, key, found } => match found {
                Some(snapshot) => self.found(states, *began, key, snapshot),
                None => self.not_found(states, *began, key),
            },
            _ => Ok(()),
        }
    }
}

impl ReaderLaw {
    fn found(
        &mut self,
        states: &DurableStates,
        began: usize,
        key: &TaskKey,
        snapshot: &Snapshot,
    ) -> Result<(), String> {
        let task = &snapshot.task;
        let seen = committed(states, key, task)
            .ok_or_else(|| format!("{} rev {} was read and never committed", short(key), task.revision))?;
        if seen < self.floor(began, key) {
            return Err(format!("{} went back to rev {}", short(key), task.revision));
        }
        // Handlers of the simulator write the number of their attempt into the progress message.
        let message = snapshot.progress.as_ref().and_then(|progress| progress.message.as_ref());
        if message.is_some_and(|message| **message != *format!("attempt {}", task.attempt)) {
            return Err(format!("{} shows the progress of another attempt: {message:?}", short(key)));
        }
        self.raise(states.line, key, seen);
        Ok(())
    }

    fn not_found(&mut self, states: &DurableStates, began: usize, key: &TaskKey) -> Result<(), String> {
        let Some(lives) = states.lives.get(key) else { return Ok(()) };
        let floor = self.floor(began, key);
        if floor.1 > 0 && lives.get(floor.0).is_some_and(|life| life.deleted_at.is_none()) {
            return Err(format!("{} was there and is not, and was not deleted", short(key)));
        }
        // A life that has ended must not be seen again.
        if lives.iter().all(|life| life.deleted_at.is_some()) {
            self.raise(states.line, key, (lives.len(), 0));
        }
        Ok(())
    }

    fn floor(&self, began: usize, key: &TaskKey) -> LifeRevision {
        let floors = self.floors.get(key).map_or(&[][..], Vec::as_slice);
        let known = floors.partition_point(|(line, _)| *line < began);
        known.checked_sub(1).map_or((0, 0), |last| floors[last].1)
    }

    fn raise(&mut self, line: usize, key: &TaskKey, seen: LifeRevision) {
        let floors = self.floors.entry(key.clone()).or_default();
        if floors.last().is_none_or(|(_, floor)| *floor < seen) {
            floors.push((line, seen));
        }
    }
}

/// The newest life that contains exactly this state.
fn committed(states: &DurableStates, key: &TaskKey, task: &Arc<Task>) -> Option<LifeRevision> {
    let lives = states.lives.get(key)?.iter().enumerate().rev();
    let mut had = lives.filter(|(_, life)| life.at(task.revision).is_some_and(|state| state == task));
    had.next().map(|(life, _)| (life, task.revision))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use longhaul_store::Snapshot;
    use longhaul_task::transition::Delete;
    use longhaul_task::{Event, Progress};

    use crate::check::test_ledger::{TestLedger, cancel, key};
    use crate::ledger::{Ack, Fact};

    #[test]
    fn a_read_of_what_was_never_committed_is_caught() {
        let (mut ledger, created) = TestLedger::with_task();
        let ended = ledger.after(&created, &cancel());
        ledger.read(&key("a"), Some(&ended));
        ledger.assert_breaks("readers see what is committed, in order");
    }

    #[test]
    fn a_reader_who_sees_a_task_go_back_is_caught() {
        let (mut ledger, created) = TestLedger::with_task();
        let ended = ledger.apply(&created, &cancel());
        ledger.read(&key("a"), Some(&ended));
        ledger.read(&key("a"), Some(&created));
        ledger.assert_breaks("readers see what is committed, in order");
    }

    #[test]
    fn a_reader_who_began_before_the_change_may_see_what_was_before_it() {
        let (mut ledger, created) = TestLedger::with_task();
        let began = ledger.lines.len();
        let ended = ledger.apply(&created, &cancel());
        ledger.read(&key("a"), Some(&ended));
        let found = Some(Snapshot { task: Arc::new(created), progress: None });
        ledger.note(Fact::Read { began, key: key("a"), found });
        ledger.assert_holds();
    }

    #[test]
    fn an_acknowledged_task_that_cannot_be_read_is_caught() {
        let (mut ledger, created) = TestLedger::with_task();
        ledger.acknowledge(Ack::Created, &created);
        ledger.read(&key("a"), None);
        ledger.assert_breaks("readers see what is committed, in order");
    }

    #[test]
    fn a_deleted_task_that_comes_back_is_caught() {
        let (mut ledger, created) = TestLedger::with_task();
        let ended = ledger.apply(&created, &cancel());
        ledger.apply(&ended, &Event::Delete(Delete));
        ledger.read(&key("a"), None);
        ledger.read(&key("a"), Some(&ended));
        ledger.assert_breaks("readers see what is committed, in order");
    }

    #[test]
    fn the_progress_of_another_attempt_is_caught() {
        let (mut ledger, created) = TestLedger::with_task();
        let progress = Progress { done: 1.0, total: None, message: Some("attempt 7".into()), at: ledger.now };
        let found = Some(Snapshot { task: Arc::new(created), progress: Some(Arc::new(progress)) });
        ledger.note(Fact::Read { began: ledger.lines.len(), key: key("a"), found });
        ledger.assert_breaks("readers see what is committed, in order");
    }
}
