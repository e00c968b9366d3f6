//! Workers and queues, by tool.

use std::collections::VecDeque;

use longhaul_task::{TaskKey, ToolRef};

use super::attempt::Attempt;
use super::{Action, Core};
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
}

impl ToolState {
    pub(super) fn new(tool: ToolRef, limits: ToolLimits) -> Self {
        Self { tool, free: limits.running_max, limits, queued: 0, idle: 0, resuming: VecDeque::new(), claiming: false }
    }

    /// So many more tasks wait.
    pub(super) fn queue(&mut self, tasks: usize) {
        self.queued = self.queued.saturating_add_unsigned(tasks);
    }

    /// So many wait no more.
    pub(super) fn unqueue(&mut self, tasks: usize) {
        self.queued = self.queued.saturating_sub_unsigned(tasks);
    }

    pub(super) fn queued(&self) -> usize {
        usize::try_from(self.queued).unwrap_or(0)
    }

    pub(super) fn running(&self) -> usize {
        self.limits.running_max.saturating_sub(self.free)
    }
}

impl Core {
    /// Gives free workers to whoever waits: first to attempts that go on, then to the queue.
    pub(super) fn feed(&mut self, tool: &ToolRef) -> Vec<Action> {
        let mut actions = self.resume(tool);
        let draining = self.draining;
        if let Some(state) = self.tool(tool) {
            let limit = state.free.min(state.queued());
            if limit > 0 && !state.claiming && !draining {
                state.free -= limit;
                state.claiming = true;
                actions.push(Action::Claim { tool: tool.clone(), limit });
                self.commit_begins();
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

    pub(super) fn claimed(&mut self, tool: &ToolRef, asked: usize, tasks: Vec<(TaskKey, u64)>) -> Vec<Action> {
        let Some(state) = self.tool(tool) else { return Vec::new() };
        let got = tasks.len();
        state.claiming = false;
        state.free += asked.saturating_sub(got);
        state.unqueue(got);
        let mut actions = Vec::new();
        for (key, fence) in tasks {
            actions.extend(self.begin(key, tool, fence));
        }
        self.commit_ends();
        if got == asked {
            actions.extend(self.feed(tool));
        } else {
            // The workers that were set aside for more are wanted by whoever goes on.
            actions.extend(self.resume(tool));
            // What is still queued is not to be started yet (or another node has it): ask again when it is time.
            actions.push(Action::LookAtQueue);
        }
        actions
    }
}
