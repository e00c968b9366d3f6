//! The attempts that this node holds.

use longhaul_task::{Owner, TaskKey, ToolRef};

use super::{Action, Core};

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
    /// Was told to stop. It keeps its worker, if it had one, until its handler is gone.
    Stopped { holds_worker: bool },
}

impl Attempt {
    /// Gives a worker to the attempt. Returns false, and gives it none, if it does not wait for one.
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

    /// Starts an attempt that has a worker. Reports of commits can arrive out of order: the end of the task's previous attempt
    /// may not have been reported yet, and the stop of this one may have been.
    pub(super) fn begin(&mut self, key: TaskKey, tool: &ToolRef, fence: u64) -> Vec<Action> {
        let attempt = Attempt { tool: tool.clone(), fence, state: AttemptState::Working };
        let mut actions = Vec::new();
        if let Some(previous) = self.attempts.insert(key.clone(), attempt) {
            self.free_slot_of(&key.owner, &previous);
            // The previous attempt may have had another tool, because the ID of a deleted task can be used again.
            actions.extend(self.assign_workers(&previous.tool));
        }
        if self.commits.take_stopped(&key, fence) {
            actions.extend(self.remove_attempt(&key, fence));
            actions.push(Action::Forget { key, fence });
        } else {
            actions.push(Action::Start { key, fence });
        }
        actions
    }

    /// Whether an attempt of this node waits for an answer and has given its worker back.
    pub(crate) fn is_idle(&self, key: &TaskKey, fence: u64) -> bool {
        self.attempts.get(key).is_some_and(|attempt| attempt.fence == fence && attempt.state == AttemptState::Idle)
    }

    /// Every branch of the attempt waits: takes its worker back.
    pub(super) fn idle(&mut self, key: &TaskKey, fence: u64) -> Vec<Action> {
        let Some(attempt) = self.attempt(key, fence).filter(|attempt| attempt.state == AttemptState::Working) else {
            return Vec::new();
        };
        attempt.state = AttemptState::Idle;
        let tool = attempt.tool.clone();
        if let Some(tool_state) = self.tool(&tool) {
            tool_state.free_worker(&key.owner);
        }
        self.assign_workers(&tool)
    }

    /// A branch of the attempt has its answer: the attempt continues at once if it still has its worker, else it waits for one.
    pub(super) fn busy(&mut self, key: TaskKey, fence: u64) -> Vec<Action> {
        let Some(attempt) = self.attempt(&key, fence) else { return Vec::new() };
        match attempt.state {
            AttemptState::Idle => {
                attempt.state = AttemptState::Resuming;
                let tool = attempt.tool.clone();
                if let Some(tool_state) = self.tool(&tool) {
                    tool_state.resuming.push(key, fence);
                }
                self.assign_workers(&tool)
            }
            // Another branch has asked for the worker, and one worker is enough for all branches of an attempt.
            AttemptState::Resuming => Vec::new(),
            AttemptState::Working | AttemptState::Stopped { .. } => vec![Action::Resume { key, fence }],
        }
    }

    /// The attempt has lost its right to write: tells its handler to stop, if this node runs it.
    pub(super) fn stop(&mut self, key: &TaskKey, fence: u64) -> Vec<Action> {
        let Some(attempt) = self.attempt(key, fence) else {
            self.commits.stopped(key, fence);
            return Vec::new();
        };
        let state_before = attempt.state;
        if attempt.is_stopped() {
            return Vec::new();
        }
        let tool = attempt.tool.clone();
        attempt.state = AttemptState::Stopped { holds_worker: state_before == AttemptState::Working };
        let Some(tool_state) = self.tool(&tool) else { return Vec::new() };
        let grace_ms = tool_state.limits.grace_ms;
        vec![Action::Stop { key: key.clone(), fence, grace_ms }]
    }

    /// Removes an attempt whose handler is gone, and offers its worker to the next one.
    pub(super) fn remove_attempt(&mut self, key: &TaskKey, fence: u64) -> Vec<Action> {
        if self.attempt(key, fence).is_none() {
            return Vec::new();
        }
        let Some(attempt) = self.attempts.remove(key) else { return Vec::new() };
        self.free_slot_of(&key.owner, &attempt);
        self.assign_workers(&attempt.tool)
    }

    /// Frees the place of an attempt, and its worker if it has one.
    fn free_slot_of(&mut self, owner: &Owner, attempt: &Attempt) {
        if let Some(tool_state) = self.tool(&attempt.tool) {
            tool_state.free_place(owner);
            match attempt.state {
                AttemptState::Working | AttemptState::Stopped { holds_worker: true } => tool_state.free_worker(owner),
                AttemptState::Idle | AttemptState::Resuming | AttemptState::Stopped { holds_worker: false } => {}
            }
        }
    }
}
