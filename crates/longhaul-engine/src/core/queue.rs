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
    /// Tasks that wait for a worker, as far as this node knows.
    pub(super) queued: usize,
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

    pub(super) fn running(&self) -> usize {
        self.limits.running_max.saturating_sub(self.free)
    }
}

impl Core {
    /// Gives free workers to whoever waits: first to attempts that go on, then to the queue.
    pub(super) fn feed(&mut self, tool: &ToolRef) -> Vec<Action> {
        let draining = self.draining;
        let mut actions = Vec::new();
        let Some(state) = self.tools.get_mut(&tool.name).filter(|state| state.tool == *tool) else {
            return actions;
        };
        while state.free > 0
            && let Some((key, fence)) = state.resuming.pop_front()
        {
            if let Some(attempt) = self.attempts.get_mut(&key).filter(|attempt| attempt.fence == fence) {
                state.free -= 1;
                attempt.work();
                actions.push(Action::Resume { key, fence });
            }
        }
        if state.free > 0 && state.queued > 0 && !state.claiming && !draining {
            let limit = state.free.min(state.queued);
            state.free -= limit;
            state.claiming = true;
            actions.push(Action::Claim { tool: state.tool.clone(), limit });
        }
        actions
    }

    pub(super) fn claimed(&mut self, tool: &ToolRef, asked: usize, tasks: Vec<(TaskKey, u64)>) -> Vec<Action> {
        let Some(state) = self.tool(tool) else { return Vec::new() };
        let got = tasks.len();
        state.claiming = false;
        state.free += asked.saturating_sub(got);
        state.queued = state.queued.saturating_sub(got);
        let mut actions = Vec::new();
        for (key, fence) in tasks {
            self.attempts.insert(key.clone(), Attempt::working(tool.clone(), fence));
            actions.push(Action::Start { key, fence });
        }
        if got == asked {
            actions.extend(self.feed(tool));
        } else {
            // What is still queued is not to be started yet (or another node has it): ask again when it is time.
            actions.push(Action::LookAtQueue);
        }
        actions
    }
}
