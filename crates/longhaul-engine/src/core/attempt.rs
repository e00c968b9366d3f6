//! The attempts that this node holds.

use longhaul_task::{TaskKey, ToolRef};

use super::{Action, Core};

/// One attempt of this node.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) tool: ToolRef,
    pub(super) fence: u64,
    state: AttemptState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AttemptState {
    /// Holds a worker.
    Working,
    /// Waits for an answer and has given its worker back.
    Idle,
    /// Has its answer and waits for a worker.
    Resuming,
    /// Was told to stop; still holds a worker, or not.
    Stopped { holds_worker: bool },
}

impl Attempt {
    /// Takes a worker if it wants one.
    pub(super) fn resume(&mut self) -> bool {
        let is_resuming = self.state == AttemptState::Resuming;
        if is_resuming {
            self.state = AttemptState::Working;
        }
        is_resuming
    }

    pub(super) fn is_stopped(&self) -> bool {
        matches!(self.state, AttemptState::Stopped { .. })
    }
}

impl Core {
    fn attempt(&mut self, key: &TaskKey, fence: u64) -> Option<&mut Attempt> {
        self.attempts.get_mut(key).filter(|attempt| attempt.fence == fence)
    }

    /// An attempt has been given a worker. News of commits overtake each other: the attempt before it may not be known
    /// to be over, and this one may have been stopped already.
    pub(super) fn begin(&mut self, key: TaskKey, tool: &ToolRef, fence: u64) -> Vec<Action> {
        let attempt = Attempt { tool: tool.clone(), fence, state: AttemptState::Working };
        if let Some(before) = self.attempts.insert(key.clone(), attempt) {
            self.let_go(&before);
        }
        if self.commits.take_stopped(&key, fence) {
            let mut actions = self.over(&key, fence);
            actions.push(Action::Forget { key, fence });
            return actions;
        }
        vec![Action::Start { key, fence }]
    }

    /// Whether an attempt of this node does nothing but wait.
    pub(crate) fn is_idle(&self, key: &TaskKey, fence: u64) -> bool {
        self.attempts.get(key).is_some_and(|attempt| attempt.fence == fence && attempt.state == AttemptState::Idle)
    }

    pub(super) fn idle(&mut self, key: &TaskKey, fence: u64) -> Vec<Action> {
        let Some(attempt) = self.attempts.get_mut(key).filter(|attempt| attempt.fence == fence) else {
            return Vec::new();
        };
        let Some(state) = self.tools.get_mut(&attempt.tool.name) else { return Vec::new() };
        if attempt.state != AttemptState::Working || state.idle >= state.limits.idle_max {
            return Vec::new();
        }
        attempt.state = AttemptState::Idle;
        state.idle += 1;
        state.free += 1;
        let tool = state.tool.clone();
        self.assign_workers(&tool)
    }

    /// An attempt that never gave its worker back goes on at once.
    pub(super) fn busy(&mut self, key: TaskKey, fence: u64) -> Vec<Action> {
        let Some(attempt) = self.attempt(&key, fence) else { return Vec::new() };
        match attempt.state {
            AttemptState::Idle => {
                attempt.state = AttemptState::Resuming;
                let tool = attempt.tool.clone();
                if let Some(state) = self.tool(&tool) {
                    state.idle = state.idle.saturating_sub(1);
                    state.resuming.push_back((key, fence));
                }
                self.assign_workers(&tool)
            }
            // The first branch that has its answer asks for the worker; the others come along with it.
            AttemptState::Resuming => Vec::new(),
            AttemptState::Working | AttemptState::Stopped { .. } => vec![Action::Resume { key, fence }],
        }
    }

    /// The right to write has moved on: tell the handler, if it is ours.
    pub(super) fn stop(&mut self, key: &TaskKey, fence: u64) -> Vec<Action> {
        let Some(attempt) = self.attempt(key, fence) else {
            self.commits.stopped(key, fence);
            return Vec::new();
        };
        let was = attempt.state;
        if attempt.is_stopped() {
            return Vec::new();
        }
        let tool = attempt.tool.clone();
        attempt.state = AttemptState::Stopped { holds_worker: was == AttemptState::Working };
        let Some(state) = self.tool(&tool) else { return Vec::new() };
        if was == AttemptState::Idle {
            state.idle = state.idle.saturating_sub(1);
        }
        let grace_ms = state.limits.grace_ms;
        vec![Action::Stop { key: key.clone(), fence, grace_ms }]
    }

    /// Nothing of the attempt is left: its worker is free.
    pub(super) fn over(&mut self, key: &TaskKey, fence: u64) -> Vec<Action> {
        if self.attempt(key, fence).is_none() {
            return Vec::new();
        }
        let Some(attempt) = self.attempts.remove(key) else { return Vec::new() };
        self.let_go(&attempt);
        self.assign_workers(&attempt.tool)
    }

    /// Takes back what an attempt held.
    fn let_go(&mut self, attempt: &Attempt) {
        if let Some(state) = self.tool(&attempt.tool) {
            match attempt.state {
                AttemptState::Working | AttemptState::Stopped { holds_worker: true } => state.free += 1,
                AttemptState::Idle => state.idle = state.idle.saturating_sub(1),
                AttemptState::Resuming | AttemptState::Stopped { holds_worker: false } => {}
            }
        }
    }
}
