//! The tools, limits and handlers of one history. The limits are small, so that they are reached.

use std::sync::Arc;

use longhaul_engine::{EngineLimits, ToolLimits};
use longhaul_task::{OnCrash, Owner, Policy, Retention, ToolRef};

use crate::ledger::{Rules, ToolRules};
use crate::random::SeededRandom;

/// The configuration of a history.
#[derive(Debug)]
pub(crate) struct Setup {
    /// Engines per process until the calm phase, which has one.
    pub(crate) engines: usize,
    /// Whether there is a node that calls the store directly.
    pub(crate) second_node: bool,
    /// The last owner has the tasks of the second node. The counts of the engines are not checked for it.
    pub(crate) owners: Vec<Owner>,
    /// The tools of the engines.
    pub(crate) tools: Vec<ToolSetup>,
    /// The tools of the second node: one that resumes and one that starts over.
    pub(crate) other_tools: [ToolSetup; 2],
    pub(crate) limits: EngineLimits,
    /// Either so small that settled tasks are evicted, or large enough for all.
    pub(crate) cache_bytes: u64,
    pub(crate) batch_max: usize,
}

#[derive(Debug)]
pub(crate) struct ToolSetup {
    pub(crate) tool: ToolRef,
    pub(crate) policy: Policy,
    pub(crate) retention: Retention,
    pub(crate) limits: ToolLimits,
    /// Whether a process may start without this tool.
    pub(crate) may_be_gone: bool,
}

/// Longer than the backoffs, the grace periods and the pauses of the services, so that a stuck task is noticed before
/// it is overdue.
pub(crate) const RUNNING_MS_MAX: u64 = 200_000;
pub(crate) const LIFE_MS_MAX: u64 = 900_000;

impl Setup {
    pub(crate) fn choose(random: &mut SeededRandom) -> Self {
        let kinds = [
            ("resume", OnCrash::Resume, false),
            ("retry", OnCrash::Retry, false),
            ("fail", OnCrash::Fail, false),
            ("gone", OnCrash::Retry, true),
        ];
        let mut tool = |(name, on_crash, may_be_gone)| {
            let policy = Policy {
                on_crash,
                attempts_max: u32::try_from(random.between(1, 3)).unwrap_or(1),
                backoff_ms: random.between(0, 500),
                backoff_ms_max: 800,
                running_ms_max: RUNNING_MS_MAX,
                life_ms_max: LIFE_MS_MAX,
            };
            let retention = match random.below(4) {
                0 => Retention::Unlimited,
                1 => Retention::FromEnd(random.between(0, 5_000)),
                2 => Retention::FromCreation(random.between(0, 100_000)),
                _ => Retention::FromEnd(random.between(5_000, 1_000_000)),
            };
            let limits = ToolLimits::default()
                .running_max(1 + random.below(3) / 2)
                .idle_max(random.below(3))
                .queued_max(random.below(4))
                .input_bytes_max(64)
                .result_bytes_max(64)
                .grace_ms(random.between(0, 500))
                .calls_max(1);
            ToolSetup { tool: ToolRef::new(name, "1"), policy, retention, limits, may_be_gone }
        };
        let tools = kinds.map(&mut tool);
        let other_tools = [("steps", OnCrash::Resume, false), ("parts", OnCrash::Retry, false)].map(&mut tool);
        let owners = ["ada", "bob", "kin"].iter().filter_map(|name| Owner::parse(name).ok()).collect();
        let limits = EngineLimits::default()
            .open_per_owner_max(2 + random.below(5))
            .tool_gone_ms(8_000)
            .drain_ms(random.between(0, 2_000));
        let cache_bytes = if random.below(2) == 0 { random.between(0, 3_000) } else { 60_000 };
        Self {
            engines: random.weighted(&[(5, 1), (1, 2), (1, 3)]).unwrap_or(1),
            second_node: random.below(2) == 0,
            owners,
            tools: tools.into(),
            other_tools,
            limits,
            cache_bytes,
            batch_max: 1 + random.below(12),
        }
    }

    /// The owners whose tasks the engines count.
    pub(crate) fn counted_owners(&self) -> &[Owner] {
        &self.owners[..2]
    }

    pub(crate) fn second_node_owner(&self) -> &Owner {
        &self.owners[2]
    }

    pub(crate) fn rules(&self) -> Rules {
        let rules = |setup: &ToolSetup| ToolRules {
            tool: setup.tool.clone(),
            running_max: setup.limits.running_max,
            idle_max: setup.limits.idle_max,
            queued_max: setup.limits.queued_max,
        };
        Rules {
            engines: self.engines,
            owners: self.counted_owners().to_vec(),
            open_per_owner_max: self.limits.open_per_owner_max,
            tools: self.tools.iter().map(rules).collect(),
        }
    }
}

/// The operations of a handler: the same in every attempt of a task.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) owner: Owner,
    pub(crate) ops: Arc<[Op]>,
    pub(crate) end: ScriptEnd,
    /// Does not stop when it is cancelled.
    pub(crate) stubborn: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum Op {
    /// Works for this many milliseconds without using `Ctx`.
    Work(u64),
    Report,
    Progress,
    Log,
    Ask,
    /// Two concurrent branches.
    Fork(Arc<[Op]>, Arc<[Op]>),
    /// Runs until it is cancelled.
    Hang,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum ScriptEnd {
    Answer,
    ToolError,
    TooLarge,
    Error,
    Panic,
}

impl Script {
    pub(crate) fn choose(random: &mut SeededRandom, owner: Owner) -> Self {
        let ops = (0..random.below(5)).map(|_| op(random, true)).collect();
        let ends = [
            (8, ScriptEnd::Answer),
            (1, ScriptEnd::ToolError),
            (1, ScriptEnd::TooLarge),
            (1, ScriptEnd::Error),
            (1, ScriptEnd::Panic),
        ];
        let end = random.weighted(&ends).unwrap_or(ScriptEnd::Answer);
        Self { owner, ops, end, stubborn: random.below(4) == 0 }
    }
}

fn op(random: &mut SeededRandom, root: bool) -> Op {
    match random.below(if root { 14 } else { 10 }) {
        0 | 1 => Op::Work(random.between(0, 30)),
        2 => Op::Work(random.between(0, 500)),
        4 => Op::Log,
        5..=8 => Op::Ask,
        9 => Op::Report,
        10 | 11 => {
            let mut branch = |_| op(random, false);
            Op::Fork((0..2).map(&mut branch).collect(), (0..2).map(&mut branch).collect())
        }
        12 => Op::Hang,
        _ => Op::Progress,
    }
}
