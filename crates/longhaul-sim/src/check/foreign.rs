use longhaul_store::StoreError;

use super::Law;
use super::durable_states::DurableStates;
use crate::ledger::{Fact, short};

/// A foreign task and an unknown one give the same answer.
pub(super) struct ForeignTaskLaw;

impl Law for ForeignTaskLaw {
    fn statement(&self) -> &'static str {
        "not yours is not there"
    }

    fn observe(&mut self, states: &DurableStates, fact: &Fact) -> Result<(), String> {
        let never_was = |key| !states.lives.contains_key(key);
        match fact {
            Fact::Denied { key, what, error: StoreError::Refused(refused), .. }
                if never_was(key) && *what != "create" =>
            {
                Err(format!("{what} of {} was told: {refused}", short(key)))
            }
            Fact::Read { key, found: Some(_), .. } if never_was(key) => Err(format!("{} was read", short(key))),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use longhaul_store::StoreError;
    use longhaul_task::TransitionError;

    use crate::check::test_ledger::{TestLedger, key};
    use crate::ledger::Fact;

    #[test]
    fn a_stranger_who_is_told_more_than_that_there_is_nothing_is_caught() {
        let mut ledger = TestLedger::new();
        let error = StoreError::Refused(TransitionError::Settled);
        ledger.note(Fact::Denied { began: 0, key: key("theirs"), what: "cancel", error });
        ledger.assert_breaks("not yours is not there");
    }
}
