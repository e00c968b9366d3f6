use longhaul_task::Task;

use super::Law;
use super::durable_states::DurableStates;
use crate::ledger::{Fact, short};

/// A settled task never changes again, except to be deleted.
pub(super) struct FinalityLaw;

impl Law for FinalityLaw {
    fn statement(&self) -> &'static str {
        "terminal is final"
    }

    fn observe(&mut self, states: &DurableStates, fact: &Fact) -> Result<(), String> {
        let Fact::Committed(commit) = fact else { return Ok(()) };
        for written in &commit.written {
            let Some(task) = &written.after else { continue };
            let before = states.before(task);
            if before.is_some_and(|before| Task::is_settled(before)) {
                return Err(format!("{} changed a settled task, {}", written.event, short(&task.key)));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::check::test_ledger::{TestLedger, key, settle};

    #[test]
    fn a_settled_task_that_changes_is_caught() {
        let (mut ledger, created) = TestLedger::with_task();
        let mut settled = ledger.apply(&created, &settle(1));
        settled.revision += 1;
        ledger.commit("report", &key("a"), Some(settled));
        ledger.assert_breaks("terminal is final");
    }
}
