use longhaul_store::StoreError;
use longhaul_task::{Outcome, TaskKey};

use super::Law;
use super::durable_states::DurableStates;
use crate::ledger::{Ack, Fact, short};

/// A change is acknowledged only after it is durable, and what was acknowledged disappears only by deletion.
pub(super) struct DurabilityLaw;

impl Law for DurabilityLaw {
    fn statement(&self) -> &'static str {
        "acknowledged is durable"
    }

    fn observe(&mut self, states: &DurableStates, fact: &Fact) -> Result<(), String> {
        match fact {
            Fact::Acknowledged { what, key, revision } => acknowledged(states, what, key, *revision),
            Fact::Denied { began, key, what, error: StoreError::NotFound } => match states.alive(key) {
                Some(life) if life.created_at < *began => {
                    Err(format!("{what} of {} found nothing, and it was there all the time", short(key)))
                }
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }
}

fn acknowledged(states: &DurableStates, what: &Ack, key: &TaskKey, revision: u64) -> Result<(), String> {
    if *what == Ack::Deleted {
        let gone = states.lives.get(key).is_some_and(|lives| lives.iter().any(|life| life.deleted_at.is_some()));
        return if gone { Ok(()) } else { Err(format!("{} was acknowledged as deleted and is there", short(key))) };
    }
    let lives = states.lives.get(key).into_iter().flatten();
    let mut states = lives.filter_map(|life| life.at(revision));
    let durable = match what {
        Ack::Cancelled => states.any(|task| task.phase.outcome() == Some(&Outcome::Cancelled)),
        _ => states.next().is_some(),
    };
    if durable { Ok(()) } else { Err(format!("{what:?} of {} rev {revision} is not on the disk", short(key))) }
}

#[cfg(test)]
mod tests {
    use longhaul_store::StoreError;
    use longhaul_task::transition;

    use crate::check::test_ledger::{TestLedger, new};
    use crate::ledger::{Ack, Fact};

    #[test]
    fn a_creation_acknowledged_before_its_commit_is_caught() {
        let mut ledger = TestLedger::new();
        ledger.acknowledge(Ack::Created, &transition::create(&new("a"), ledger.now));
        ledger.assert_breaks("acknowledged is durable");
    }

    #[test]
    fn a_cancellation_that_was_acknowledged_and_is_not_there_is_caught() {
        let (mut ledger, created) = TestLedger::with_task();
        ledger.acknowledge(Ack::Cancelled, &created);
        ledger.assert_breaks("acknowledged is durable");
    }

    #[test]
    fn a_task_that_is_denied_while_it_is_there_is_caught() {
        let (mut ledger, created) = TestLedger::with_task();
        let began = ledger.lines.len();
        ledger.note(Fact::Denied { began, key: created.key, what: "cancel", error: StoreError::NotFound });
        ledger.assert_breaks("acknowledged is durable");
    }
}
