use std::sync::Arc;

use foldhash::HashMap;
use longhaul_task::{Phase, Retention, Task, ToolRef};

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
            // An attempt that waits for an answer keeps its worker if it could not return it, and queued tasks wait
            // for the worker.
            phase if phase.not_before().is_some() => {
                stage == EndStage::LeftAlone && all_workers_taken(states, quiet, &task.tool)
            }
            Phase::Waiting { .. } => stage == EndStage::LeftAlone,
            // A parent waits for its child, and the child is checked separately.
            Phase::Running { .. } => {
                let waits_for_child = states.all().any(|it| is_open_child(it, task));
                stage == EndStage::LeftAlone && (waits_for_child || all_workers_taken(states, quiet, &task.tool))
            }
            Phase::Parked { wake_condition } => {
                let waits_for_child = wake_condition.for_children && states.all().any(|it| is_open_child(it, task));
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
    let is_ours = |task: &&Arc<Task>| task.phase.active_attempt().is_some_and(|run| !quiet.others.contains(&run.node));
    let held = states.all().filter(is_ours).count();
    let IdleCounts { attempts, running, handlers, .. } = quiet;
    // A handler has returned when its end waits for the children.
    if *attempts != held || *running != held || *handlers > held {
        return Err(format!(
            "{held} attempts are held, the core knows {attempts}, the shell {running}; {handlers} handlers live"
        ));
    }
    for (tool, running, queued) in &quiet.load {
        let here = || states.all().filter(|task| task.tool == *tool);
        let is_queued = here().filter(|task| is_queued(task)).count();
        let is_held = here().filter(|task| task.phase.active_attempt().is_some()).count();
        if *queued != is_queued {
            return Err(format!("{is_queued} tasks of {tool} are queued, and {queued} are counted"));
        }
        // An attempt that waits has returned its worker, unless too many others had done so already.
        if *running > is_held {
            return Err(format!("{is_held} attempts of {tool} are held, and {running} workers are taken"));
        }
    }
    Ok(())
}
