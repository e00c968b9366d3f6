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
    pub(crate) owners: Vec<Owner>,
    /// The tools of the engines.
    pub(crate) tools: Vec<ToolSetup>,
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
    /// Whether a handler that returns a tool error runs again.
    pub(crate) retries_failures: bool,
}

/// Longer than the backoffs, the grace periods and the pauses of the services, so that a stuck task is noticed before
/// it is overdue.
pub(crate) const RUNNING_MS_MAX: u64 = 300_000;
pub(crate) const LIFE_MS_MAX: u64 = 1_200_000;

impl Setup {
    pub(crate) fn choose(random: &mut SeededRandom) -> Self {
        let kinds = [
            ("resume", OnCrash::Resume, false),
            ("retry", OnCrash::Retry, false),
            ("fail", OnCrash::Fail, false),
            ("gone", OnCrash::Retry, true),
        ];
        let tool = |(name, on_crash, may_be_gone)| {
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
            let retries_failures = random.below(2) == 0;
            ToolSetup { tool: ToolRef::new(name, "1"), policy, retention, limits, may_be_gone, retries_failures }
        };
        let tools = kinds.map(tool);
        let owners = ["ada", "bob", "kin"].iter().filter_map(|name| Owner::parse(name).ok()).collect();
        let limits = EngineLimits::default()
            .open_per_owner_max(2 + random.below(5))
            .tool_gone_ms(8_000)
            .drain_ms(random.between(0, 2_000));
        let cache_bytes = if random.below(2) == 0 { random.between(0, 3_000) } else { 60_000 };
        Self {
            engines: random.weighted(&[(5, 1), (1, 2), (1, 3)]).unwrap_or(1),
            owners,
            tools: tools.into(),
            limits,
            cache_bytes,
            batch_max: 1 + random.below(12),
        }
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
            owners: self.owners.clone(),
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
    /// The number of levels of subtasks above it.
    pub(crate) depth: usize,
    /// Whether it ignores its cancellation.
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
    /// A question with a deadline in milliseconds.
    AskWithin(u64),
    Step(StepPlan),
    Sleep(u64),
    Now,
    Random,
    Subtasks(AwaitedSubtasks, Arc<[SubtaskPlan]>),
    /// Two concurrent branches.
    Fork {
        left: Arc<[Op]>,
        right: Arc<[Op]>,
        /// Whether later attempts give them other keys.
        is_renamed: bool,
    },
    /// A question that the handler waits for this many milliseconds and then leaves open.
    LeaveQuestion(u64),
    /// The first of two branches that ends.
    Race(Arc<[Op]>, Arc<[Op]>),
    /// A branch that is given up after this many milliseconds.
    TimeLimit(u64, Arc<[Op]>),
    /// Runs until it is cancelled.
    Hang,
}

/// A step and what its work does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepPlan {
    /// How long the work takes.
    pub(crate) ms: u64,
    /// The number of tries that fail before one succeeds.
    pub(crate) failures: u32,
    /// Whether a failure is permanent.
    pub(crate) permanent: bool,
    /// The number of tries and the pause in milliseconds before the second one, if the step is tried again.
    pub(crate) retry: Option<(u32, u64)>,
}

/// Which subtasks a handler waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AwaitedSubtasks {
    All,
    OneByOne,
    /// Only the first. The handler may end before the others.
    First,
}

#[derive(Debug, Clone)]
pub(crate) struct SubtaskPlan {
    pub(crate) tool: Arc<str>,
    /// The number of its script, which is its input.
    pub(crate) script: usize,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum ScriptEnd {
    Answer,
    ToolError,
    TooLarge,
    Error,
    Panic,
}

/// The maximum number of levels of subtasks below a root.
const DEPTH_MAX: usize = 2;

/// The index of the tool that resumes in [`Setup::tools`].
const RESUMING_TOOL: usize = 0;

/// Writes random scripts, each with the scripts of its subtasks.
pub(crate) struct ScriptWriter<'a> {
    pub(crate) random: &'a mut SeededRandom,
    pub(crate) setup: &'a Setup,
    pub(crate) owner: &'a Owner,
    pub(crate) scripts: &'a mut Vec<Arc<Script>>,
}

/// The position of an operation in its script.
#[derive(Debug, Clone, Copy)]
struct ScriptPosition {
    tool: usize,
    /// The number of levels of subtasks above.
    depth: usize,
    /// The number of levels of forks and races above.
    forks: usize,
}

impl ScriptWriter<'_> {
    /// The number of a new script for a tool.
    pub(crate) fn write(&mut self, tool: usize) -> usize {
        self.script(tool, 0)
    }

    fn script(&mut self, tool: usize, depth: usize) -> usize {
        let count = self.random.below(5 - depth);
        let mut ops: Vec<_> = (0..count).map(|_| self.op(ScriptPosition { tool, depth, forks: 0 })).collect();
        // A handler that leaves a question open and then returns, often before its children.
        let leaves_children = matches!(ops.last(), Some(Op::Subtasks(AwaitedSubtasks::First, _)));
        if self.random.below(if leaves_children { 2 } else { 16 }) == 0 {
            ops.push(Op::LeaveQuestion(self.random.between(0, 300)));
        }
        let ends = [
            (8, ScriptEnd::Answer),
            (2, ScriptEnd::ToolError),
            (1, ScriptEnd::TooLarge),
            (1, ScriptEnd::Error),
            (1, ScriptEnd::Panic),
        ];
        let end = self.random.weighted(&ends).unwrap_or(ScriptEnd::Answer);
        let stubborn = self.random.below(4) == 0;
        self.scripts.push(Arc::new(Script { owner: self.owner.clone(), ops: ops.into(), end, depth, stubborn }));
        self.scripts.len() - 1
    }

    fn op(&mut self, position: ScriptPosition) -> Op {
        let nested = position.forks >= 2;
        match self.random.below(if nested { 24 } else { 30 }) {
            0 | 1 => Op::Work(self.random.between(0, 30)),
            2 => Op::Work(self.random.between(0, 500)),
            3 => Op::Log,
            4 => Op::Progress,
            5..=8 => Op::Ask,
            9 => Op::Report,
            10 | 11 => Op::AskWithin(self.random.between(0, 3_000)),
            16 | 17 => Op::Sleep(self.random.between(0, 400)),
            18 => Op::Sleep(self.random.between(1_000, 2_500)),
            19 => Op::Now,
            20 => Op::Random,
            21..=23 if position.depth < DEPTH_MAX && position.tool < self.setup.tools.len() - 1 => {
                self.subtasks(position)
            }
            12..=15 | 21..=23 => Op::Step(self.step()),
            24 | 25 => {
                let (left, right) = (self.branch(position), self.branch(position));
                Op::Fork { left, right, is_renamed: self.random.below(8) == 0 }
            }
            26 | 27 => Op::Race(self.branch(position), self.branch(position)),
            28 => Op::TimeLimit(self.random.between(0, 2_000), self.branch(position)),
            _ => Op::Hang,
        }
    }

    fn branch(&mut self, position: ScriptPosition) -> Arc<[Op]> {
        let count = 1 + self.random.below(2);
        (0..count).map(|_| self.op(ScriptPosition { forks: position.forks + 1, ..position })).collect()
    }

    fn step(&mut self) -> StepPlan {
        let random = &mut *self.random;
        let failures = u32::try_from([0, 0, 1, 2][random.below(4)]).unwrap_or(0);
        StepPlan {
            ms: random.between(0, 60),
            failures,
            permanent: random.below(5) == 0,
            retry: (random.below(3) > 0).then(|| ([1, 2, 3][random.below(3)], [0, 200, 1_200][random.below(3)])),
        }
    }

    /// A handler that does not resume keeps its place in memory while it waits. So its subtasks use other tools than their
    /// ancestors: otherwise a task could wait for a place that one of its ancestors holds.
    fn subtasks(&mut self, position: ScriptPosition) -> Op {
        let awaited = [AwaitedSubtasks::All, AwaitedSubtasks::All, AwaitedSubtasks::OneByOne, AwaitedSubtasks::First]
            [self.random.below(4)];
        let count = if self.random.below(2) == 0 { 1 } else { 1 + self.random.below(3) };
        let plans = (0..count).map(|_| {
            let first = if position.tool == RESUMING_TOOL { RESUMING_TOOL } else { position.tool + 1 };
            let tool = first + self.random.below(self.setup.tools.len() - first);
            let script = self.script(tool, position.depth + 1);
            SubtaskPlan { tool: Arc::clone(&self.setup.tools[tool].tool.name), script }
        });
        Op::Subtasks(awaited, plans.collect())
    }
}
