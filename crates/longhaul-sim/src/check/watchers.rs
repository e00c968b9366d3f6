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
