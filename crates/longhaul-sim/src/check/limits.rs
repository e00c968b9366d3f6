use super::Law;
use foldhash::HashMap;
use longhaul_task::{Owner, ToolRef};

use super::durable_states::{DurableStates, is_queued};
use crate::ledger::{Fact, short};

/// The limits on working handlers, on new tasks in the queue and on open tasks of an owner are kept.
#[derive(Default)]
pub(super) struct LimitLaw {
    /// By tool: tasks that returned to the queue. Such a task may leave the queue again before the core knows of
    /// either change; until then the core admits one task more.
    came_back: HashMap<ToolRef, usize>,
    /// Commits in doubt. Each can hide one task from the engine until it has counted again.
    in_doubt: usize,
}

impl Law for LimitLaw {
    fn statement(&self) -> &'static str {
        "everything has a limit"
    }

    fn observe(&mut self, states: &DurableStates, fact: &Fact) -> Result<(), String> {
        let Some(rules) = &states.rules else { return Ok(()) };
        match fact {
            Fact::Working { tool, handlers } => {
                let rules = rules.tools.iter().find(|rules| rules.tool == *tool);
                match rules.map(|rules| rules.running_max) {
                    Some(max) if *handlers > max => Err(format!("{handlers} handlers of {tool} work, {max} may")),
                    _ => Ok(()),
                }
            }
            Fact::InDoubt { .. } => {
                self.in_doubt += 1;
                Ok(())
            }
            Fact::Committed(commit) => {
                for task in commit.written.iter().filter_map(|written| written.after.as_ref()) {
                    if task.failed_attempts >= task.policy.attempts_max.max(1) {
                        return Err(format!("{} has come to nothing {} times", short(&task.key), task.failed_attempts));
                    }
                    if is_queued(task) && task.attempt > 0 {
                        *self.came_back.entry(task.tool.clone()).or_default() += 1;
                    }
                }
                let grows = commit.written.iter().any(|written| written.event == "create");
                if !grows || rules.engines > 1 {
                    return Ok(());
                }
                let mut open = HashMap::default();
                let mut queued = HashMap::default();
                // The limits hold for tasks that clients create. A task may have subtasks beyond them.
                for task in states.all().filter(|task| !task.is_settled() && task.is_root()) {
                    *open.entry(&task.key.owner).or_insert(0) += 1;
                    // The limit holds for new tasks. A task that returns to the queue was admitted before.
                    if is_queued(task) && task.attempt == 0 {
                        *queued.entry(&task.tool).or_insert(0) += 1;
                    }
                }
                let open_max = rules.open_per_owner_max + self.in_doubt;
                let past = |owner: &&Owner| open.get(owner).is_some_and(|open| *open > open_max);
                if let Some(owner) = rules.owners.iter().find(past) {
                    return Err(format!("{owner} has more than {open_max} open tasks"));
                }
                for tool in &rules.tools {
                    let queued_max =
                        tool.queued_max + self.in_doubt + self.came_back.get(&tool.tool).copied().unwrap_or(0);
                    if queued.get(&tool.tool).is_some_and(|queued| *queued > queued_max) {
                        return Err(format!("the queue of {} is past its limit", tool.tool));
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use longhaul_task::transition;
    use longhaul_task::transition::Create;

    use crate::check::test_ledger::{TestLedger, key, new, tool};
    use crate::ledger::Fact;

    #[test]
    fn more_handlers_than_workers_are_caught() {
        let mut ledger = TestLedger::new();
        ledger.note(Fact::Working { tool: tool(), handlers: 2 });
        ledger.assert_breaks("everything has a limit");
    }

    #[test]
    fn more_open_tasks_than_an_owner_may_have_are_caught() {
        let (mut ledger, _) = TestLedger::with_task();
        ledger.create("b");
        ledger.assert_holds();
        ledger.create("c");
        ledger.assert_breaks("everything has a limit");
    }

    #[test]
    fn a_queue_past_its_limit_is_caught() {
        let mut ledger = TestLedger::new();
        for id in ["a", "b"] {
            let queued = transition::create(&Create { claimed_by: None, ..new(id) }, ledger.now);
            ledger.commit("create", &key(id), Some(queued));
        }
        ledger.assert_breaks("everything has a limit");
    }
}
