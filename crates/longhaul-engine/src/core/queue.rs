//! Workers and queues, by tool.

use std::collections::VecDeque;

use longhaul_task::{TaskKey, ToolRef};

use super::attempt::Attempt;
use super::{Action, CommitId, Core, EngineStage};
use crate::ToolLimits;

/// What this node knows of one tool.
#[derive(Debug)]
pub(super) struct ToolState {
    pub(super) tool: ToolRef,
    pub(super) limits: ToolLimits,
    /// Workers without work.
    pub(super) free: usize,
    /// Tasks that wait for a worker, as far as this node knows. News of commits overtake each other, so that a task may
    /// leave the queue before it is known to be in it: then this is too low for a moment, perhaps below zero.
    queued: isize,
    /// Attempts that gave back their worker while they waited.
    pub(super) idle: usize,
    /// Attempts that have their answer and want a worker again; they go before the queue.
    pub(super) resuming: VecDeque<(TaskKey, u64)>,
    /// One claim at a time: its answer says whether there is more.
    claiming: bool,
    /// The last claim got all that may be claimed: what is still queued has to wait, until there is an offer.
    all_wait: bool,
}

impl ToolState {
    pub(super) fn new(tool: ToolRef, limits: ToolLimits) -> Self {
        Self {
            tool,
            free: limits.running_max,
            limits,
            queued: 0,
            idle: 0,
            resuming: VecDeque::new(),
            claiming: false,
            all_wait: false,
        }
    }

    /// So many more tasks wait.
    pub(super) fn queue(&mut self, tasks: usize) {
        self.queued = self.queued.saturating_add_unsigned(tasks);
    }

    /// So many wait no more.
    pub(super) fn unqueue(&mut self, tasks: usize) {
        self.queued = self.queued.saturating_sub_unsigned(tasks);
    }

    /// Nothing is known to wait.
    pub(super) fn empty_queue(&mut self) {
        self.queued = 0;
    }

    pub(super) fn queued(&self) -> usize {
        usize::try_from(self.queued).unwrap_or(0)
    }

    /// Whether there may be a queued task whose time has come.
    pub(super) fn may_be_claimed(&self) -> bool {
        self.queued() > 0 && !self.all_wait
    }

    pub(super) fn running(&self) -> usize {
        self.limits.running_max.saturating_sub(self.free)
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

    /// Gives free workers first to attempts that go on, then to the queue.
    pub(super) fn assign_workers(&mut self, tool: &ToolRef) -> Vec<Action> {
        let mut actions = self.resume(tool);
        let serving = self.stage == EngineStage::Serving;
        if let Some(state) = self.tool(tool) {
            let limit = state.free.min(state.queued());
            if limit > 0 && state.may_be_claimed() && !state.claiming && serving {
                state.free -= limit;
                state.claiming = true;
                let commit = self.commits.begin();
                actions.push(Action::Claim { tool: tool.clone(), limit, commit });
            }
        }
        actions
    }

    /// Gives free workers to attempts that have their answer.
    fn resume(&mut self, tool: &ToolRef) -> Vec<Action> {
        let mut actions = Vec::new();
        let Some(state) = self.tools.get_mut(&tool.name).filter(|state| state.tool == *tool) else {
            return actions;
        };
        while state.free > 0
            && let Some((key, fence)) = state.resuming.pop_front()
        {
            let attempt = self.attempts.get_mut(&key).filter(|attempt| attempt.fence == fence);
            // It may have been stopped while it waited.
            if attempt.is_some_and(Attempt::resume) {
                state.free -= 1;
                actions.push(Action::Resume { key, fence });
            }
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
        state.free += asked.saturating_sub(got);
        state.unqueue(got);
        let mut actions = Vec::new();
        for (key, fence) in tasks {
            actions.extend(self.begin(key, tool, fence));
        }
        self.commits.end(commit);
        if got == asked {
            actions.extend(self.assign_workers(tool));
        } else {
            // Attempts that go on want the workers that were set aside for the claim.
            actions.extend(self.resume(tool));
            // What is still queued is not to be started yet (or another node has it): ask again when it is time.
            actions.push(Action::LookAtQueue);
        }
        actions
    }
}
