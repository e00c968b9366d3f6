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

#[cfg(test)]
mod tests {
    use longhaul_store::HeldAttempt;
    use longhaul_task::NodeId;

    use crate::check::test_ledger::{TestLedger, key, node};
    use crate::ledger::Fact;

    #[test]
    fn an_attempt_of_a_dead_process_after_recovery_is_caught() {
        let mut ledger = TestLedger::new();
        let held = vec![HeldAttempt { key: key("a"), node: node(), fence: 1 }];
        ledger.note(Fact::Recovered { nodes: vec![NodeId::mint([1; 16])], held });
        ledger.assert_breaks("after recovery no attempt belongs to a dead process");
    }
}
