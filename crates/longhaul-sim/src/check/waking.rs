use std::sync::Arc;

use longhaul_task::{ChildRange, Questions, Task};

use super::Law;
use super::durable_states::DurableStates;
use crate::ledger::{Commit, Fact, short};

/// A task without a handler in memory is woken by an answer, at its time, or with the end of the last child of a range, and not
/// earlier.
pub(super) struct WakingLaw;

impl Law for WakingLaw {
    fn statement(&self) -> &'static str {
        "a parked task wakes when what it waits for has happened"
    }

    fn observe(&mut self, states: &DurableStates, fact: &Fact) -> Result<(), String> {
        let Fact::Committed(commit) = fact else { return Ok(()) };
        for task in states.all().filter(|task| task.phase.wake_condition().is_some()) {
            if let Some(range) = task.awaited_children().iter().find(|range| is_over(states, task, **range)) {
                return Err(format!("{} still waits for {range:?}, which has ended", short(&task.key)));
            }
        }
        commit
            .written
            .iter()
            .filter_map(|written| written.after.as_ref())
            .try_for_each(|task| woken(states, commit, task))
    }
}

fn woken(states: &DurableStates, commit: &Commit, task: &Arc<Task>) -> Result<(), String> {
    let before = states.before(task).filter(|_| task.phase.not_before().is_some());
    let Some((before, condition)) = before.and_then(|before| Some((before, before.phase.wake_condition()?))) else {
        return Ok(());
    };
    let open = |task: &Task| task.phase.questions().map_or(0, Questions::count);
    let is_answered = open(task) < open(before);
    let is_time = condition.wake_at().is_some_and(|at| at <= commit.now);
    let has_ended = condition.children.iter().any(|range| is_over(states, task, *range));
    let clock_was_set_back = condition.timer.is_some_and(|timer| timer.since > commit.now);
    if is_answered || is_time || has_ended || clock_was_set_back {
        return Ok(());
    }
    Err(format!("{} was woken although nothing has happened: {condition:?}", short(&task.key)))
}

fn is_over(states: &DurableStates, parent: &Task, range: ChildRange) -> bool {
    let is_child = |it: &Task| (&it.key.owner, it.family.parent.as_ref()) == (&parent.key.owner, Some(&parent.key.id));
    !states.all().any(|it| is_child(it) && !it.is_settled() && range.contains(it.family.ordinal))
}

#[cfg(test)]
mod tests {
    use longhaul_task::{Phase, Wait};

    use crate::check::test_ledger::{cancel, parked};

    #[test]
    fn a_parent_that_is_not_woken_by_its_last_child_is_caught() {
        let (mut ledger, _, child) = parked();
        ledger.apply(&child, &cancel());
        ledger.assert_breaks("a parked task wakes when what it waits for has happened");
    }

    #[test]
    fn a_parent_that_is_woken_too_early_is_caught() {
        let (mut ledger, parent, _) = parked();
        let mut woken = parent.clone();
        woken.revision += 1;
        woken.phase = Phase::Queued { wait: Wait::until(ledger.now, ledger.now) };
        ledger.commit("wake", &parent.key, Some(woken));
        ledger.assert_breaks("a parked task wakes when what it waits for has happened");
    }
}
