//! The tools, limits and handlers of one history: small, so that everything fills up.

use std::sync::Arc;

use longhaul_engine::{EngineLimits, ToolLimits};
use longhaul_task::{OnCrash, Owner, Policy, Retention, ToolRef};

use crate::chance::Chance;
use crate::ledger::{Rules, ToolRules};

/// What a history is played with.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) owners: Vec<Owner>,
    pub(crate) tools: Vec<ToolSetup>,
    pub(crate) limits: EngineLimits,
    /// So small that settled tasks are evicted, or large enough that none is.
    pub(crate) cache_bytes: u64,
    pub(crate) batch_max: usize,
}

#[derive(Debug)]
pub(crate) struct ToolSetup {
    pub(crate) tool: ToolRef,
    pub(crate) policy: Policy,
    pub(crate) retention: Retention,
    pub(crate) limits: ToolLimits,
    /// Whether a process may come up without it.
    pub(crate) may_be_gone: bool,
}

/// Longer than the backoffs, the graces and the pauses of the services, so that what is stuck shows before its time
/// is up.
pub(crate) const RUNNING_MS_MAX: u64 = 200_000;
pub(crate) const LIFE_MS_MAX: u64 = 900_000;

impl Setup {
    pub(crate) fn choose(chance: &mut Chance) -> Self {
        let kinds = [
            ("resume", OnCrash::Resume, false),
            ("retry", OnCrash::Retry, false),
            ("fail", OnCrash::Fail, false),
            ("gone", OnCrash::Retry, true),
        ];
        let tools = kinds.map(|(name, on_crash, may_be_gone)| {
            let policy = Policy {
                on_crash,
                attempts_max: u32::try_from(chance.between(1, 3)).unwrap_or(1),
                backoff_ms: chance.between(0, 500),
                backoff_ms_max: 800,
                running_ms_max: RUNNING_MS_MAX,
                life_ms_max: LIFE_MS_MAX,
            };
            let retention = match chance.below(4) {
                0 => Retention::Unlimited,
                1 => Retention::FromEnd(chance.between(0, 5_000)),
                2 => Retention::FromCreation(chance.between(0, 100_000)),
                _ => Retention::FromEnd(chance.between(5_000, 1_000_000)),
            };
            let limits = ToolLimits::default()
                .running_max(1 + chance.below(3) / 2)
                .idle_max(chance.below(3))
                .queued_max(chance.below(4))
                .input_bytes_max(64)
                .result_bytes_max(64)
                .grace_ms(chance.between(0, 500))
                .calls_max(1);
            ToolSetup { tool: ToolRef::new(name, "1"), policy, retention, limits, may_be_gone }
        });
        let owners = ["ada", "bob"].iter().filter_map(|name| Owner::parse(name).ok()).collect();
        let limits = EngineLimits::default()
            .open_per_owner_max(2 + chance.below(5))
            .tool_gone_ms(10_000)
            .drain_ms(chance.between(0, 2_000));
        let cache_bytes = if chance.below(2) == 0 { chance.between(0, 3_000) } else { 1 << 20 };
        Self { owners, tools: tools.into(), limits, cache_bytes, batch_max: 1 + chance.below(12) }
    }

    pub(crate) fn rules(&self) -> Rules {
        let rules = |setup: &ToolSetup| ToolRules {
            tool: setup.tool.clone(),
            running_max: setup.limits.running_max,
            queued_max: setup.limits.queued_max,
        };
        Rules { open_per_owner_max: self.limits.open_per_owner_max, tools: self.tools.iter().map(rules).collect() }
    }

    pub(crate) fn tool(&self, name: &str) -> Option<(usize, &ToolSetup)> {
        self.tools.iter().enumerate().find(|(_, setup)| &*setup.tool.name == name)
    }
}

/// What a handler does: the same in every attempt of its task, as a real one would.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) ops: Arc<[Op]>,
    pub(crate) end: End,
    /// Does not stop when it is told to.
    pub(crate) stubborn: bool,
    /// Gives up its memory while it waits, if its tool resumes.
    pub(crate) drops: bool,
    /// Waits for its children before it returns.
    pub(crate) waits: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum Op {
    /// Works for so many steps, away from its context.
    Work(u32),
    Report,
    Progress,
    /// Does something once, on record.
    Step,
    Ask,
    /// Two branches side by side.
    Fork(Arc<[Op]>, Arc<[Op]>),
    /// Makes a child of that tool, if it is admitted.
    Spawn(usize),
    /// Waits for its children.
    Join,
    /// Sleeps on record and gives up its memory meanwhile.
    Sleep(u64),
    /// Hands the task back, the first time.
    Release(u64),
    /// Runs until it is cancelled.
    Hang,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum End {
    Answer,
    ToolError,
    TooLarge,
    Error,
    Panic,
}

impl Script {
    /// `tool` is its place among the tools: children are of later ones, so that no family waits for its own workers.
    pub(crate) fn choose(chance: &mut Chance, setup: &Setup, tool: usize) -> Self {
        let resumes = setup.tools[tool].policy.on_crash == OnCrash::Resume;
        let ops = (0..chance.below(5)).map(|_| op(chance, setup, tool, resumes, true)).collect();
        let ends = [(8, End::Answer), (1, End::ToolError), (1, End::TooLarge), (1, End::Error), (1, End::Panic)];
        Self {
            ops,
            end: chance.weighted(&ends).unwrap_or(End::Answer),
            stubborn: chance.below(4) == 0,
            drops: resumes && chance.below(2) == 0,
            waits: chance.below(2) == 0,
        }
    }
}

fn op(chance: &mut Chance, setup: &Setup, tool: usize, resumes: bool, root: bool) -> Op {
    let simple = [Op::Work(u32::try_from(chance.below(4)).unwrap_or(0)), Op::Report, Op::Progress, Op::Step, Op::Ask];
    let last = setup.tools.len() - 1;
    match chance.below(if root { 16 } else { 8 }) {
        0 => simple[0].clone(),
        2 => Op::Progress,
        3 => Op::Step,
        4..=7 => Op::Ask,
        8 => {
            let mut branch = |_| op(chance, setup, tool, resumes, false);
            Op::Fork((0..2).map(&mut branch).collect(), (0..2).map(&mut branch).collect())
        }
        9 | 10 if tool < last => Op::Spawn(tool + 1 + chance.below(last - tool)),
        11 => Op::Join,
        12 if resumes => Op::Sleep(chance.between(0, 2_000)),
        13 if resumes => Op::Sleep(chance.between(0, 200)),
        13 | 15 => Op::Release(chance.between(0, 300)),
        14 => Op::Hang,
        _ => Op::Report,
    }
}
