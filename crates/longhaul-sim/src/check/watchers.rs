use super::Law;
use super::durable_states::DurableStates;
use crate::ledger::{Fact, short};

/// A watcher that subscribed and then read is woken for every later change.
pub(super) struct WatcherLaw;

impl Law for WatcherLaw {
    fn statement(&self) -> &'static str {
        "a watcher is woken for every change"
    }

    fn observe(&mut self, states: &DurableStates, fact: &Fact) -> Result<(), String> {
        let Fact::Followed { key, seen } = fact else { return Ok(()) };
        let now = states.now(key).map(|task| task.revision);
        if *seen == now { Ok(()) } else { Err(format!("{} is at {now:?}, its watcher saw {seen:?}", short(key))) }
    }
}

#[cfg(test)]
mod tests {
    use crate::check::test_ledger::{TestLedger, cancel, key};
    use crate::ledger::Fact;

    #[test]
    fn a_watcher_that_was_not_woken_is_caught() {
        let (mut ledger, created) = TestLedger::with_task();
        ledger.apply(&created, &cancel());
        ledger.note(Fact::Followed { key: key("a"), seen: Some(created.revision) });
        ledger.assert_breaks("a watcher is woken for every change");
    }
}
