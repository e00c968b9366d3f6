use super::Law;
use super::durable_states::DurableStates;
use crate::ledger::{Fact, short};

/// When a process serves, no attempt in the store belongs to a dead process.
pub(super) struct RecoveryLaw;

impl Law for RecoveryLaw {
    fn statement(&self) -> &'static str {
        "after recovery no attempt belongs to a dead process"
    }

    fn observe(&mut self, _states: &DurableStates, fact: &Fact) -> Result<(), String> {
        let Fact::Recovered { nodes, held } = fact else { return Ok(()) };
        match held.iter().find(|attempt| !nodes.contains(&attempt.node)) {
            Some(attempt) => Err(format!("{} belongs to {}", short(&attempt.key), attempt.node)),
            None => Ok(()),
        }
    }
}
