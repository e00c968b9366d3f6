//! Workers and queues, by tool.

use longhaul_store::ToolClaim;
use longhaul_task::{Owner, TaskKey, ToolRef};

use super::attempt::Attempt;
use super::resuming::Resuming;
use super::{Action, CommitId, Core, EngineStage};
use crate::ToolLimits;
use crate::shares::Shares;

/// Of so many workers of a tool, one is for owners that have none. If an owner's handlers never end, the tasks of others
/// still run.
const WORKERS_PER_RESERVED: usize = 16;

/// What this node knows of one tool.
#[derive(Debug)]
pub(super) struct ToolState {
    pub(super) tool: ToolRef,
    pub(super) limits: ToolLimits,
    /// Who has how many workers.
    pub(super) workers: Shares,
    /// Tasks that wait for a worker, as far as this node knows. Its capacity limits new ones.
    pub(super) queue: Shares,
    /// The places of attempts in memory, running or waiting. An attempt has one from its start to its end, so that one that
    /// waits for an answer can always give its worker back, and the open questions of one owner cannot take all places.
    pub(super) places: Shares,
    pub(super) resuming: Resuming,
    turn: WorkerTurn,
    /// One claim at a time: its answer says whether there is more.
    claiming: bool,
    /// The last claim got all that may be claimed: what is still queued has to wait, until there is an offer.
    all_wait: bool,
    /// The last claim left out tasks of owners that had no room for them.
    some_left_out: bool,
}

/// Which of both gets the next worker, if both want it.
#[derive(Debug, Clone, Copy)]
enum WorkerTurn {
    /// Attempts that have their answer.
    Answered,
    Queue,
}

impl ToolState {
    pub(super) fn new(tool: ToolRef, limits: ToolLimits) -> Self {
        Self {
            tool,
            workers: Shares::with_reserve(limits.running_max, limits.running_max / WORKERS_PER_RESERVED),
            queue: Shares::new(limits.queued_max),
            places: Shares::new(limits.running_max.saturating_add(limits.idle_max)),
            limits,
            resuming: Resuming::default(),
            turn: WorkerTurn::Answered,
            claiming: false,
            all_wait: false,
            some_left_out: false,
        }
    }

    /// What to claim with the free workers, if there may be a queued task whose time has come and whose owner may have a
    /// worker and a place for it.
    pub(super) fn next_claim(&self) -> Option<ToolClaim> {
        let most = self.workers.room_for_new().min(self.places.room_for_new());
        if self.all_wait || most == 0 || self.queue.total() == 0 {
            return None;
        }
        let mut owner_limits = self.places.room_below(most);
        for (owner, room) in self.workers.room_below(most) {
            owner_limits.entry(owner).and_modify(|limit| *limit = room.min(*limit)).or_insert(room);
        }
        owner_limits.retain(|owner, room| self.queue.of(owner) > *room);
        let left_out: usize = owner_limits.iter().map(|(owner, room)| self.queue.of(owner) - room).sum();
        let limit = most.min(self.queue.total().saturating_sub(left_out));
        (limit > 0).then(|| ToolClaim { tool: self.tool.clone(), limit, owner_limits })
    }

    /// Gives the place of an attempt back.
    pub(super) fn free_place(&mut self, owner: &Owner) {
        self.places.give_back(owner, 1);
        self.look_at_left_out();
    }

    pub(super) fn free_worker(&mut self, owner: &Owner) {
        self.workers.give_back(owner, 1);
        self.look_at_left_out();
    }

    /// An owner that had no room left may get a task from the queue now.
    fn look_at_left_out(&mut self) {
        if self.some_left_out {
            self.all_wait = false;
        }
    }

    /// Whether no task of the tool runs, waits or is being claimed here.
    pub(super) fn is_idle(&self) -> bool {
        self.running() == 0 && self.queue.total() == 0 && self.places.total() == 0 && !self.claiming
    }

    pub(super) fn running(&self) -> usize {
        self.workers.total()
    }
}

impl Core {
    /// There may be a task now whose time has come.
    pub(super) fn offer(&mut self, tool: &ToolRef) -> Vec<Action> {
        if let Some(state) = self.tool(tool) {
            state.all_wait = false;
        }
        self.assign_workers(tool)
    }

    /// Gives free workers to attempts that have their answer and to the queue, in turn if both want them: neither the
    /// answers of one owner nor the queued tasks of others keep all workers.
    pub(super) fn assign_workers(&mut self, tool: &ToolRef) -> Vec<Action> {
        let serving = self.stage == EngineStage::Serving;
        let mut actions = Vec::new();
        let Some(state) = self.tools.get_mut(&tool.name).filter(|state| state.tool == *tool) else {
            return actions;
        };
        let claim = if serving && !state.claiming { state.next_claim() } else { None };
        let half = match state.turn {
            WorkerTurn::Answered => state.workers.free() / 2,
            WorkerTurn::Queue => state.workers.free().div_ceil(2),
        };
        let for_queue = claim.as_ref().map_or(0, |claim| claim.limit.min(half));
        while state.workers.free() > for_queue
            && let Some((key, fence)) = state.resuming.pop(|owner| state.workers.allows(owner, 1))
        {
            let attempt = self.attempts.get_mut(&key).filter(|attempt| attempt.fence == fence);
            // It may have been stopped while it waited.
            if attempt.is_some_and(Attempt::resume) {
                state.workers.add(&key.owner, 1);
                actions.push(Action::Resume { key, fence });
                state.turn = WorkerTurn::Queue;
            }
        }
        if let Some(mut claim) = claim.filter(|_| state.workers.free() > 0) {
            claim.limit = claim.limit.min(state.workers.free());
            state.workers.set_aside(claim.limit);
            state.places.set_aside(claim.limit);
            state.claiming = true;
            state.some_left_out = !claim.owner_limits.is_empty();
            state.turn = WorkerTurn::Answered;
            actions.push(Action::Claim { claim, commit: self.commits.begin() });
        }
        actions
    }

    pub(super) fn claimed(
        &mut self,
        tool: &ToolRef,
        asked: usize,
        tasks: Vec<(TaskKey, u64)>,
        commit: CommitId,
    ) -> Vec<Action> {
        let Some(state) = self.tool(tool) else {
            let actions = self.fail(tool, asked, tasks);
            self.commits.end(commit);
            return actions;
        };
        let got = tasks.len();
        state.claiming = false;
        state.all_wait = got < asked;
        state.workers.take_back(asked);
        state.places.take_back(asked);
        for (key, _) in &tasks {
            state.queue.give_back(&key.owner, 1);
            state.workers.add(&key.owner, 1);
            state.places.add(&key.owner, 1);
        }
        let mut actions = Vec::new();
        for (key, fence) in tasks {
            actions.extend(self.begin(key, tool, fence));
        }
        self.commits.end(commit);
        // Attempts that have their answer want the workers that were set aside for the claim and not needed.
        actions.extend(self.assign_workers(tool));
        if got < asked {
            // What is still queued is not to be started yet (or another node has it): ask again when it is time.
            actions.push(Action::LookAtQueue);
        }
        actions
    }
}
