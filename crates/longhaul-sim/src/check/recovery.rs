use super::Law;
use super::truth::Truth;
use crate::ledger::{Fact, short};

/// Once a process serves, nothing in the store belongs to a dead one.
pub(super) struct Recovery;

impl Law for Recovery {
    fn says(&self) -> &'static str {
        "after recovery no attempt belongs to a dead process"
    }

    fn look(&mut self, _truth: &Truth, fact: &Fact) -> Result<(), String> {
        let Fact::Recovered { nodes, held } = fact else { return Ok(()) };
        match held.iter().find(|attempt| !nodes.contains(&attempt.node)) {
            Some(attempt) => Err(format!("{} belongs to {}", short(&attempt.key), attempt.node)),
            None => Ok(()),
        }
    }
}
