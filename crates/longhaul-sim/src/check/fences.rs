use foldhash::HashSet;
use longhaul_task::Task;

use super::Law;
use super::durable_states::{DurableStates, Life};
use crate::ledger::{Fact, short};

/// A write under an outdated fence changes nothing, and the right to write moves only by raising the fence.
pub(super) struct FenceLaw;

/// The events that an attempt writes under its fence.
const BY_ATTEMPT: [&str; 7] = ["report", "ask", "abandon", "spawn", "park", "release", "settle"];

impl Law for FenceLaw {
    fn statement(&self) -> &'static str {
        "one attempt wins"
    }

    fn observe(&mut self, states: &DurableStates, fact: &Fact) -> Result<(), String> {
        match fact {
            Fact::Wrote { key, fence, event, revision } if BY_ATTEMPT.contains(event) => {
                // The task may have been deleted and its ID used again. Two lives of an ID never have a fence in
                // common.
                let before = |life: &Life| life.at(revision - 1).is_some_and(|task| holds(task, *fence));
                let held = states.lives(key).any(before);
                if held { Ok(()) } else { Err(format!("{event} of {} under fence {fence}", short(key))) }
            }
            Fact::WroteLate { key, fence, event } => {
                Err(format!("a late {event} of {} under fence {fence}", short(key)))
            }
            Fact::Committed(commit) => {
                let tasks: HashSet<_> = commit.written.iter().map(|written| &written.key).collect();
                tasks.into_iter().filter_map(|key| states.alive(key)).try_for_each(|life| {
                    life.states
                        .windows(2)
                        .rev()
                        .take(commit.written.len())
                        .try_for_each(|pair| check_fence_change(&pair[0], &pair[1]))
                })
            }
            _ => Ok(()),
        }
    }
}

fn holds(task: &Task, fence: u64) -> bool {
    task.fence == fence && task.phase.active_attempt().is_some()
}

/// A node that gets the task with this change gets it under a new fence.
fn check_fence_change(before: &Task, after: &Task) -> Result<(), String> {
    let (had, has) =
        (before.phase.active_attempt().map(|run| run.node), after.phase.active_attempt().map(|run| run.node));
    let lost = had.is_some() && has.is_none() && !after.is_settled();
    let won = has.is_some() && had != has;
    if after.fence < before.fence || ((lost || won) && after.fence == before.fence) {
        return Err(format!("{} moved from fence {} to {}", short(&after.key), before.fence, after.fence));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use longhaul_task::Event;
    use longhaul_task::transition::Claim;

    use crate::check::test_ledger::{TestLedger, key, node, release, settle};
    use crate::ledger::Fact;

    #[test]
    fn a_write_under_an_old_fence_is_caught() {
        let (mut ledger, created) = TestLedger::with_task();
        let released = ledger.apply(&created, &release(1));
        let claimed = ledger.apply(&released, &Event::Claim(Claim { node: node() }));
        let settled = ledger.apply(&claimed, &settle(claimed.fence));
        ledger.note(Fact::Wrote { key: key("a"), fence: 1, event: "settle", revision: settled.revision });
        ledger.assert_breaks("one attempt wins");
    }

    #[test]
    fn an_attempt_that_loses_its_task_without_a_higher_fence_is_caught() {
        let (mut ledger, created) = TestLedger::with_task();
        let mut released = ledger.after(&created, &release(1));
        released.fence = created.fence;
        ledger.commit("release", &key("a"), Some(released));
        ledger.assert_breaks("one attempt wins");
    }
}
