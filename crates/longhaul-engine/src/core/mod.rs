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
mod resuming;

use std::collections::BTreeSet;
use std::sync::Arc;

use foldhash::HashMap;
use longhaul_store::{TaskCount, ToolClaim};
use longhaul_task::transition::Settle;
use longhaul_task::{Effect, Event, JournalEntry, NodeId, Outcome, Owner, TaskError, TaskKey, ToolRef};

pub use self::admit::Admission;
pub use self::alarm::Alarm;
use self::attempt::Attempt;
pub use self::commits::CommitId;
use self::commits::Commits;
pub use self::due::due_event;
use self::queue::ToolState;
pub use self::queue_decision::{QueueDecision, decide_queue};
use crate::{BudgetUse, EngineError, EngineLimits, ToolLimits};

/// The state that decisions are made from.
#[derive(Debug)]
pub struct Core {
    node: NodeId,
    limits: EngineLimits,
    tools: HashMap<Arc<str>, ToolState>,
    /// Tools that no node serves. Their queued tasks are claimed in order to settle them as failed.
    failing: BTreeSet<ToolRef>,
    /// Owners without open tasks are left out. The core may learn that a subtask has ended before it learns that it was created:
    /// then the count is below zero for a moment.
    open_by_owner: HashMap<Owner, isize>,
    attempts: HashMap<TaskKey, Attempt>,
    commits: Commits,
    stage: EngineStage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EngineStage {
    /// The attempts of dead processes are being given up. Nothing is claimed or counted yet.
    Recovering,
    Serving,
    /// The process is going down. Nothing is created or claimed.
    Draining,
}

/// Something that happened.
#[derive(Debug, Clone)]
pub enum Input {
    /// An admitted creation was committed.
    Created {
        key: TaskKey,
        tool: ToolRef,
        /// The fence of the attempt, if the creation claimed the task.
        claimed: Option<u64>,
        commit: CommitId,
    },
    /// An admitted creation was not committed.
    NotCreated {
        owner: Owner,
        tool: ToolRef,
        /// Whether a worker was reserved for the task.
        claimed: bool,
        commit: CommitId,
    },
    /// The answer to [`Action::Claim`].
    Claimed {
        tool: ToolRef,
        /// How many tasks were asked for.
        asked: usize,
        /// The claimed tasks, each with its fence.
        tasks: Vec<(TaskKey, u64)>,
        commit: CommitId,
    },
    /// There may be queued tasks of a tool that can be claimed.
    MaybeQueued { tool: ToolRef },
    /// No node has served a tool for a while.
    ToolGone { tool: ToolRef },
    /// Every branch of an attempt waits.
    Idle { key: TaskKey, fence: u64 },
    /// A branch of an attempt has what it waited for and wants to go on.
    Busy { key: TaskKey, fence: u64 },
    /// The handler returned.
    Ended {
        key: TaskKey,
        fence: u64,
        outcome: Outcome,
        /// Journal entries that are written with the end.
        entries: Vec<JournalEntry>,
    },
    /// The handler was dropped.
    Dropped { key: TaskKey, fence: u64 },
    /// The end of an attempt was written, or the store refused it for good.
    Written { key: TaskKey, fence: u64 },
    /// An event was committed.
    Applied { effects: Vec<Effect> },
    /// The process is going down.
    Drain,
}

/// Something that the shell has to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Run the handler.
    Start { key: TaskKey, fence: u64 },
    /// Drop what is kept for an attempt that was stopped before it was started.
    Forget { key: TaskKey, fence: u64 },
    /// Claim queued tasks. Workers and places in memory for them are reserved.
    Claim {
        claim: ToolClaim,
        /// Has to be returned in [`Input::Claimed`].
        commit: CommitId,
    },
    /// Find out when the next queued task of any tool may be claimed.
    LookAtQueue,
    /// Write the end of an attempt, and try again until it is written or refused.
    Write { key: TaskKey, fence: u64, event: Event },
    /// Let an attempt that waited for a worker go on.
    Resume { key: TaskKey, fence: u64 },
    /// Tell a handler to stop, and drop it if it is still running after `grace_ms`.
    Stop { key: TaskKey, fence: u64, grace_ms: u64 },
}

impl Core {
    /// A core that knows no tools and runs nothing.
    pub fn new(node: NodeId, limits: EngineLimits) -> Self {
        Self {
            node,
            limits,
            tools: HashMap::default(),
            failing: BTreeSet::new(),
            open_by_owner: HashMap::default(),
            attempts: HashMap::default(),
            commits: Commits::default(),
            stage: EngineStage::Recovering,
        }
    }

    /// The ID by which the store knows this process.
    pub fn node(&self) -> NodeId {
        self.node
    }

    pub fn register(&mut self, tool: ToolRef, limits: ToolLimits) {
        self.tools.insert(tool.name.clone(), ToolState::new(tool, limits));
    }

    /// Adds a tool, or replaces the one of its name. One that has tasks in this process keeps its limits, and cannot be
    /// replaced by another version of itself.
    pub fn replace(&mut self, tool: ToolRef, limits: ToolLimits) -> Result<(), EngineError> {
        match self.tools.get(&tool.name) {
            Some(state) if state.is_idle() => self.register(tool, limits),
            Some(state) if state.tool == tool => {}
            Some(state) => return Err(EngineError::ToolBusy(state.tool.clone())),
            None => self.register(tool, limits),
        }
        Ok(())
    }

    /// Removes a tool, unless it has tasks that run or wait in this process. Returns whether it is gone.
    pub fn unregister(&mut self, name: &str) -> bool {
        let is_idle = self.tools.get(name).is_none_or(ToolState::is_idle);
        if is_idle {
            self.tools.remove(name);
        }
        is_idle
    }

    /// Replaces the counts by those of the store: after recovery, and after a commit in doubt, when no commit is under
    /// way. The first call ends the recovery.
    pub fn recount(&mut self, counts: Vec<TaskCount>) {
        self.open_by_owner.clear();
        self.tools.values_mut().for_each(|state| state.queue.clear());
        for TaskCount { owner, tool, tasks, queued, .. } in counts {
            if let Some(state) = self.tool(&tool) {
                state.queue.add(&owner, usize::try_from(queued).unwrap_or(usize::MAX));
            }
            self.count_open(&owner, isize::try_from(tasks).unwrap_or(isize::MAX));
        }
        if self.stage == EngineStage::Recovering {
            self.stage = EngineStage::Serving;
        }
    }

    /// Whether this node serves a tool in this version.
    pub fn serves(&self, tool: &ToolRef) -> bool {
        self.tools.get(&tool.name).is_some_and(|state| state.tool == *tool)
    }

    /// How many attempts this node holds.
    pub fn attempts(&self) -> usize {
        self.attempts.len()
    }

    /// Notes that a commit begins. Its answer may give attempts to this node or change the counts.
    pub fn begin_commit(&mut self) -> CommitId {
        self.commits.begin()
    }

    /// Notes that a commit has ended, and that the core knows its result.
    pub fn end_commit(&mut self, commit: CommitId) {
        self.commits.end(commit);
    }

    /// The last commit that was begun, if every commit has ended.
    pub fn last_commit_if_all_ended(&self) -> Option<CommitId> {
        let last = self.commits.last();
        self.commits.have_ended_up_to(last).then_some(last)
    }

    /// The last commit that was begun.
    pub fn last_commit(&self) -> CommitId {
        self.commits.last()
    }

    /// Whether a commit and all before it have ended, so that the core knows every attempt that they gave to this node.
    pub fn knows_up_to(&self, commit: CommitId) -> bool {
        self.commits.have_ended_up_to(commit)
    }

    /// Number of stops that are kept because the claim of their attempt may not have come back yet.
    pub fn early_stops(&self) -> usize {
        self.commits.stops()
    }

    /// How many open tasks an owner has, as far as this node knows.
    pub fn open(&self, owner: &Owner) -> usize {
        self.open_by_owner.get(owner).map_or(0, |open| usize::try_from(*open).unwrap_or(0))
    }

    /// Each tool with its number of running and of queued tasks, as far as this node knows, in any order.
    pub fn load(&self) -> impl Iterator<Item = (&ToolRef, usize, usize)> {
        self.tools.values().map(|state| (&state.tool, state.running(), state.queue.total()))
    }

    /// The use of the queues, of the places of attempts in memory and of the workers, over all tools.
    pub(crate) fn budgets(&self) -> impl Iterator<Item = BudgetUse> {
        self.tools.values().flat_map(|state| {
            [state.queue.usage("queue"), state.places.usage("attempts"), state.workers.usage("workers")]
        })
    }

    /// Applies an input and returns the actions that follow from it.
    pub fn step(&mut self, input: Input) -> Vec<Action> {
        match input {
            Input::Created { key, tool, claimed, commit } => self.created(key, &tool, claimed, commit),
            Input::NotCreated { owner, tool, claimed, commit } => self.not_created(&owner, &tool, claimed, commit),
            Input::Claimed { tool, asked, tasks, commit } => self.claimed(&tool, asked, tasks, commit),
            Input::MaybeQueued { tool } => self.offer(&tool),
            Input::ToolGone { tool } => self.tool_gone(tool),
            Input::Idle { key, fence } => self.idle(&key, fence),
            Input::Busy { key, fence } => self.busy(key, fence),
            Input::Ended { key, fence, outcome, entries } => self.ended(key, fence, outcome, entries),
            Input::Dropped { key, fence } | Input::Written { key, fence } => self.remove_attempt(&key, fence),
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

    /// Updates the counts and the attempts of this node after a committed event.
    fn applied(&mut self, effects: Vec<Effect>) -> Vec<Action> {
        let mut actions = Vec::new();
        for effect in effects {
            match effect {
                Effect::Queued { key, tool, .. } => {
                    if let Some(state) = self.tool(&tool) {
                        state.queue.add(&key.owner, 1);
                    }
                    actions.extend(self.offer(&tool));
                    actions.push(Action::LookAtQueue);
                }
                Effect::Spawned { key } => self.count_open(&key.owner, 1),
                Effect::Settled { key, tool, was_queued } => {
                    self.count_open(&key.owner, -1);
                    if was_queued && let Some(state) = self.tool(&tool) {
                        state.queue.give_back(&key.owner, 1);
                    }
                }
                Effect::Stop { key, node, fence } if node == self.node => actions.extend(self.stop(&key, fence)),
                Effect::Stop { .. } | Effect::Deleted => {}
            }
        }
        actions
    }

    /// Counts children as open that a commit under way creates.
    pub(crate) fn expect_children(&mut self, owner: &Owner, children: usize) {
        self.count_open(owner, isize::try_from(children).unwrap_or(isize::MAX));
    }

    /// Ends what [`expect_children`](Self::expect_children) began. The effects of the commit have counted the children that exist.
    pub(crate) fn forget_children(&mut self, owner: &Owner, children: usize) {
        self.count_open(owner, -isize::try_from(children).unwrap_or(isize::MAX));
    }

    /// Changes the number of open tasks of an owner.
    fn count_open(&mut self, owner: &Owner, by: isize) {
        let open = self.open_by_owner.get(owner).copied().unwrap_or(0).saturating_add(by);
        if open == 0 {
            self.open_by_owner.remove(owner);
        } else {
            self.open_by_owner.insert(owner.clone(), open);
        }
    }

    fn ended(&mut self, key: TaskKey, fence: u64, outcome: Outcome, entries: Vec<JournalEntry>) -> Vec<Action> {
        let Some(attempt) = self.attempts.get_mut(&key).filter(|attempt| attempt.fence == fence) else {
            return Vec::new();
        };
        if attempt.is_stopped() {
            return self.remove_attempt(&key, fence);
        }
        let result_bytes_max = self.tools.get(&attempt.tool.name).map(|state| state.limits.result_bytes_max);
        let outcome = limit_result(outcome, result_bytes_max.unwrap_or(usize::MAX));
        vec![Action::Write { key, fence, event: Event::Settle(Settle { fence, outcome, entries }) }]
    }
}

/// Replaces a result of more than `bytes_max` bytes by an error.
pub(crate) fn limit_result(outcome: Outcome, bytes_max: usize) -> Outcome {
    match outcome {
        Outcome::Result { body, .. } if body.bytes() > bytes_max => {
            Outcome::Error(TaskError::result_too_large(body.bytes(), bytes_max))
        }
        other => other,
    }
}
