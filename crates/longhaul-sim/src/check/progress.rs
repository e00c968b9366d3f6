use foldhash::HashMap;
use longhaul_task::{Phase, Retention, Task, ToolRef, WaitingState};

use super::Law;
use super::durable_states::{DurableStates, is_queued};
use crate::ledger::{EndStage, Fact, IdleCounts, short};

/// Without further requests every task ends, all workers become free, and all counts are right.
pub(super) struct ProgressLaw;

impl Law for ProgressLaw {
    fn statement(&self) -> &'static str {
        "nothing is stuck and nothing leaks"
    }

    fn observe(&mut self, states: &DurableStates, fact: &Fact) -> Result<(), String> {
        let Fact::Quiet(quiet) = fact else { return Ok(()) };
        stuck(states, quiet)?;
        check_leaks(states, quiet)
    }
}

fn stuck(states: &DurableStates, quiet: &IdleCounts) -> Result<(), String> {
    let stage = quiet.stage;
    for task in states.all() {
        let done = match &task.phase {
            Phase::Settled { .. } => stage < EndStage::Expired || task.retention == Retention::Unlimited,
            phase if phase.not_before().is_some() => {
                stage == EndStage::LeftAlone
                    && (all_workers_taken(states, quiet, &task.tool) || !has_place(states, task))
            }
            // A handler that resumes has been dropped if it waits, and every deadline has passed before the end of a history.
            Phase::Waiting { state, questions } => {
                let is_dropped = matches!(state, WaitingState::Parked(condition) if condition.timer.is_none());
                stage == EndStage::LeftAlone && questions.deadline().is_none() && (is_dropped || !task.resumes())
            }
            // A parent waits for its child, and the child is checked separately. A handler that resumes waits for children in
            // memory only if it has returned.
            Phase::Running { .. } => {
                let waits_for_child = states.all().any(|it| is_open_child(it, task));
                stage == EndStage::LeftAlone && (waits_for_child || all_workers_taken(states, quiet, &task.tool))
            }
            Phase::Parked { wake_condition } => {
                let waits_for_child = !wake_condition.children.is_empty() && wake_condition.timer.is_none();
                stage == EndStage::LeftAlone && waits_for_child
            }
            Phase::Queued { .. } => false,
        };
        if !done {
            return Err(format!("{} is stuck at {stage:?}: {:?}", short(&task.key), task.phase));
        }
    }
    Ok(())
}

fn all_workers_taken(states: &DurableStates, quiet: &IdleCounts, tool: &ToolRef) -> bool {
    let rules = states.rules.iter().flat_map(|rules| &rules.tools).find(|rules| rules.tool == *tool);
    let load = quiet.load.iter().find(|(of, ..)| of == tool);
    rules.zip(load).is_some_and(|(rules, (_, running, _))| *running >= rules.running_max)
}

/// Whether the owner of a queued task may have one more attempt in memory. It may use three times what is free.
fn has_place(states: &DurableStates, task: &Task) -> bool {
    let Some(rules) = states.rules.iter().flat_map(|rules| &rules.tools).find(|rules| rules.tool == task.tool) else {
        return true;
    };
    let held = || states.all().filter(|it| it.tool == task.tool && it.phase.active_attempt().is_some());
    let own = held().filter(|it| it.key.owner == task.key.owner).count();
    let free = (rules.running_max + rules.idle_max).saturating_sub(held().count());
    own < free * 3
}

fn is_open_child(task: &Task, parent: &Task) -> bool {
    let of = (&task.key.owner, task.family.parent.as_ref()) == (&parent.key.owner, Some(&parent.key.id));
    of && !task.is_settled()
}

fn check_leaks(states: &DurableStates, quiet: &IdleCounts) -> Result<(), String> {
    let mut open = HashMap::default();
    for task in states.all().filter(|task| !task.is_settled()) {
        *open.entry(&task.key.owner).or_insert(0) += 1;
    }
    for (owner, counted) in &quiet.open {
        let open = open.get(owner).copied().unwrap_or(0);
        if *counted != open {
            return Err(format!("{owner} has {open} open tasks, and {counted} are counted"));
        }
    }
    let held = states.all().filter(|task| task.phase.active_attempt().is_some()).count();
    let IdleCounts { attempts, places, running, handlers, .. } = quiet;
    // A handler has returned when its end waits for the children.
    if *attempts != held || *places != held || *running != held || *handlers > held {
        return Err(format!(
            "{held} attempts are held, the core knows {attempts} with {places} places, the shell {running}; \
             {handlers} handlers live"
        ));
    }
    for (tool, running, queued) in &quiet.load {
        let here = || states.all().filter(|task| task.tool == *tool);
        let is_queued = here().filter(|task| is_queued(task)).count();
        let is_running = here().filter(|task| matches!(task.phase, Phase::Running { .. })).count();
        if *queued != is_queued {
            return Err(format!("{is_queued} tasks of {tool} are queued, and {queued} are counted"));
        }
        // An attempt that waits has returned its worker.
        if *running > is_running {
            return Err(format!("{is_running} attempts of {tool} are running, and {running} workers are taken"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::check::test_ledger::TestLedger;
    use crate::ledger::EndStage;

    #[test]
    fn a_task_that_is_stuck_is_caught() {
        let (mut ledger, _) = TestLedger::with_task();
        ledger.quiet(EndStage::LeftAlone, 1, 0);
        ledger.assert_breaks("nothing is stuck and nothing leaks");
    }

    #[test]
    fn a_worker_that_did_not_come_back_is_caught() {
        let mut ledger = TestLedger::new();
        ledger.quiet(EndStage::Settled, 0, 1);
        ledger.assert_breaks("nothing is stuck and nothing leaks");
    }

    #[test]
    fn a_count_that_did_not_come_back_is_caught() {
        let mut ledger = TestLedger::new();
        ledger.quiet(EndStage::Settled, 1, 0);
        ledger.assert_breaks("nothing is stuck and nothing leaks");
    }
}
