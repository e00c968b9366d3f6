//! The engine's decisions: a deterministic step function, without a clock, a runtime or a store.
//!
//! The async shell tells it what happened ([`Input`]) and does what it says ([`Action`]). It counts workers and queues,
//! knows which attempts this node holds, and decides what to run, claim, write and stop. What a *task* may do is
//! decided in [`longhaul_task`].

mod admit;
mod alarm;
mod attempt;
mod commits;
mod due;
mod gone;
mod queue;
mod queue_decision;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use longhaul_store::TaskCount;
use longhaul_task::transition::Settle;
use longhaul_task::{Effect, Event, NodeId, Outcome, Owner, TaskError, TaskKey, ToolRef};

pub use self::admit::Admission;
pub use self::alarm::Alarm;
use self::attempt::Attempt;
pub use self::commits::CommitId;
use self::commits::Commits;
pub use self::due::due_event;
use self::queue::ToolState;
pub use self::queue_decision::{QueueDecision, decide_queue};
use crate::{EngineLimits, ToolLimits};

/// The state that decisions are made from.
#[derive(Debug)]
pub struct Core {
    node: NodeId,
    limits: EngineLimits,
    tools: BTreeMap<Arc<str>, ToolState>,
    /// Tools that no node serves, while their queued tasks are claimed to be failed.
    failing: BTreeSet<ToolRef>,
    open_by_owner: HashMap<Owner, usize>,
    attempts: HashMap<TaskKey, Attempt>,
    commits: Commits,
    stage: EngineStage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EngineStage {
    /// What dead processes left behind is being dealt with. Nothing is claimed, and nothing is counted yet.
    Recovering,
    Serving,
    /// Nothing new is taken.
    Draining,
}

/// Something that happened.
#[derive(Debug, Clone)]
pub enum Input {
    /// The creation that was admitted is committed.
    Created {
        key: TaskKey,
        tool: ToolRef,
        /// The fence it was claimed under, if it was.
        claimed: Option<u64>,
        commit: CommitId,
    },
    /// The creation that was admitted came to nothing.
    NotCreated {
        owner: Owner,
        tool: ToolRef,
        /// Whether it had been given a worker.
        claimed: bool,
        commit: CommitId,
    },
    /// A claim came back.
    Claimed {
        tool: ToolRef,
        asked: usize,
        /// What was got, each under its fence.
        tasks: Vec<(TaskKey, u64)>,
        commit: CommitId,
    },
    /// Queued tasks of a tool may be there to be claimed.
    MaybeQueued { tool: ToolRef },
    /// No node has served a tool for a while.
    ToolGone { tool: ToolRef },
    /// Every branch of an attempt waits for an answer.
    Idle { key: TaskKey, fence: u64 },
    /// A branch of an attempt has its answer and wants to go on.
    Busy { key: TaskKey, fence: u64 },
    /// The handler returned.
    Ended { key: TaskKey, fence: u64, outcome: Outcome },
    /// The handler was dropped.
    Dropped { key: TaskKey, fence: u64 },
    /// The end of an attempt was written, or refused for good.
    Written { key: TaskKey, fence: u64 },
    /// An event was committed.
    Applied { effects: Vec<Effect> },
    /// The process is going down: take nothing new.
    Drain,
}

/// Something to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Run the handler.
    Start { key: TaskKey, fence: u64 },
    /// Let go of an attempt that was stopped before it was started.
    Forget { key: TaskKey, fence: u64 },
    /// Claim queued tasks; workers for them are set aside.
    Claim {
        tool: ToolRef,
        limit: usize,
        /// To be handed back with the answer.
        commit: CommitId,
    },
    /// Look when the next queued task of any tool may be claimed.
    LookAtQueue,
    /// Write the end of an attempt, and try again until it is written or refused.
    Write { key: TaskKey, fence: u64, event: Event },
    /// Let an attempt that waited for a worker go on.
    Resume { key: TaskKey, fence: u64 },
    /// Tell a handler to stop, and drop it if it has not within that time.
    Stop { key: TaskKey, fence: u64, grace_ms: u64 },
}

impl Core {
    /// A core that knows no tools and runs nothing.
    pub fn new(node: NodeId, limits: EngineLimits) -> Self {
        Self {
            node,
            limits,
            tools: BTreeMap::new(),
            failing: BTreeSet::new(),
            open_by_owner: HashMap::new(),
            attempts: HashMap::new(),
            commits: Commits::default(),
            stage: EngineStage::Recovering,
        }
    }

    /// This process, as the store knows it.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Adds a tool.
    pub fn register(&mut self, tool: ToolRef, limits: ToolLimits) {
        self.tools.insert(tool.name.clone(), ToolState::new(tool, limits));
    }

    /// Takes over what the store counted: after recovery, and after a doubt once no commit is under way. The first count
    /// ends the recovery.
    pub fn recount(&mut self, counts: Vec<TaskCount>) {
        self.open_by_owner.clear();
        self.tools.values_mut().for_each(ToolState::empty_queue);
        for TaskCount { owner, tool, tasks, queued, .. } in counts {
            *self.open_by_owner.entry(owner).or_default() += usize::try_from(tasks).unwrap_or(usize::MAX);
            if let Some(state) = self.tool(&tool) {
                state.queue(usize::try_from(queued).unwrap_or(usize::MAX));
            }
        }
        if self.stage == EngineStage::Recovering {
            self.stage = EngineStage::Serving;
        }
    }

    /// Whether this node serves that tool in that version.
    pub fn serves(&self, tool: &ToolRef) -> bool {
        self.tools.get(&tool.name).is_some_and(|state| state.tool == *tool)
    }

    /// How many attempts this node holds.
    pub fn attempts(&self) -> usize {
        self.attempts.len()
    }

    /// A commit begins. Its answer may give attempts to this node or move its counts.
    pub fn begin_commit(&mut self) -> CommitId {
        self.commits.begin()
    }

    /// A commit has ended, and what followed from it is known.
    pub fn end_commit(&mut self, commit: CommitId) {
        self.commits.end(commit);
    }

    /// The last commit that was begun, if every commit has ended.
    pub fn all_ended(&self) -> Option<CommitId> {
        let last = self.commits.last();
        self.commits.have_ended_up_to(last).then_some(last)
    }

    /// The last commit that was begun.
    pub fn last_commit(&self) -> CommitId {
        self.commits.last()
    }

    /// Whether that commit and all before it have come back, so that every attempt they gave to this node is known.
    pub fn knows_up_to(&self, commit: CommitId) -> bool {
        self.commits.have_ended_up_to(commit)
    }

    /// How many stops are remembered that may have overtaken the commit of their attempt.
    pub fn early_stops(&self) -> usize {
        self.commits.stops()
    }

    /// How many open tasks an owner has, as far as this node knows.
    pub fn open(&self, owner: &Owner) -> usize {
        self.open_by_owner.get(owner).copied().unwrap_or(0)
    }

    /// How many tasks of a tool run, and how many are queued, as far as this node knows.
    pub fn load(&self) -> impl Iterator<Item = (&ToolRef, usize, usize)> {
        self.tools.values().map(|state| (&state.tool, state.running(), state.queued()))
    }

    /// What follows from what happened.
    pub fn step(&mut self, input: Input) -> Vec<Action> {
        match input {
            Input::Created { key, tool, claimed, commit } => self.created(key, &tool, claimed, commit),
            Input::NotCreated { owner, tool, claimed, commit } => self.not_created(&owner, &tool, claimed, commit),
            Input::Claimed { tool, asked, tasks, commit } => self.claimed(&tool, asked, tasks, commit),
            Input::MaybeQueued { tool } => self.offer(&tool),
            Input::ToolGone { tool } => self.tool_gone(tool),
            Input::Idle { key, fence } => self.idle(&key, fence),
            Input::Busy { key, fence } => self.busy(key, fence),
            Input::Ended { key, fence, outcome } => self.ended(key, fence, outcome),
            Input::Dropped { key, fence } | Input::Written { key, fence } => self.over(&key, fence),
            Input::Applied { effects } => self.applied(effects),
            Input::Drain => {
                self.stage = EngineStage::Draining;
                Vec::new()
            }
        }
    }

    fn tool(&mut self, tool: &ToolRef) -> Option<&mut ToolState> {
        self.tools.get_mut(&tool.name).filter(|state| state.tool == *tool)
    }

    /// A committed event has consequences for the counts and the attempts of this node.
    fn applied(&mut self, effects: Vec<Effect>) -> Vec<Action> {
        let mut actions = Vec::new();
        for effect in effects {
            match effect {
                Effect::Queued { tool, .. } => {
                    if let Some(state) = self.tool(&tool) {
                        state.queue(1);
                    }
                    actions.extend(self.offer(&tool));
                    actions.push(Action::LookAtQueue);
                }
                Effect::Settled { key, tool, was_queued } => {
                    self.closed(&key.owner);
                    if was_queued && let Some(state) = self.tool(&tool) {
                        state.unqueue(1);
                    }
                }
                Effect::Stop { key, node, fence } if node == self.node => actions.extend(self.stop(&key, fence)),
                Effect::Stop { .. } | Effect::Deleted => {}
            }
        }
        actions
    }

    fn closed(&mut self, owner: &Owner) {
        if let Some(open) = self.open_by_owner.get_mut(owner) {
            *open = open.saturating_sub(1);
            if *open == 0 {
                self.open_by_owner.remove(owner);
            }
        }
    }

    fn ended(&mut self, key: TaskKey, fence: u64, outcome: Outcome) -> Vec<Action> {
        let Some(attempt) = self.attempts.get_mut(&key).filter(|attempt| attempt.fence == fence) else {
            return Vec::new();
        };
        if attempt.is_stopped() {
            return self.over(&key, fence);
        }
        let result_bytes_max = self.tools.get(&attempt.tool.name).map(|state| state.limits.result_bytes_max);
        let outcome = within(outcome, result_bytes_max.unwrap_or(usize::MAX));
        vec![Action::Write { key, fence, event: Event::Settle(Settle { fence, outcome }) }]
    }
}

/// The outcome if it is within its limit, or the refusal that says it is not.
pub(crate) fn within(outcome: Outcome, bytes_max: usize) -> Outcome {
    match outcome {
        Outcome::Result { body, .. } if body.bytes() > bytes_max => {
            Outcome::Error(TaskError::result_too_large(body.bytes(), bytes_max))
        }
        fits => fits,
    }
}
