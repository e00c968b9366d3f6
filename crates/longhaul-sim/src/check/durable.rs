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
