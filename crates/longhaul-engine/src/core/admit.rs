//! Whether a new task is taken, and whether a worker is free for it.

use std::sync::Arc;

use longhaul_task::{Owner, TaskKey, ToolRef};

use super::{Action, CommitId, Core, EngineStage};
use crate::EngineError;

/// A task that may be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admission {
    pub tool: ToolRef,
    /// Whether a worker is set aside for it, so that the creation can claim it in the same commit.
    pub claimed: bool,
    /// To be handed back when the creation is committed, or came to nothing.
    pub commit: CommitId,
}

impl Core {
    /// Decides on a new task. Once admitted it counts; [`Input::NotCreated`](super::Input::NotCreated) takes it back.
    pub fn admit(&mut self, owner: &Owner, tool: &Arc<str>, input_bytes: usize) -> Result<Admission, EngineError> {
        if self.stage == EngineStage::Draining {
            return Err(EngineError::Draining);
        }
        let open = self.open(owner);
        let open_max = self.limits.open_per_owner_max;
        let state = self.tools.get_mut(tool).ok_or_else(|| EngineError::NoSuchTool(tool.clone()))?;
        let bytes_max = state.limits.input_bytes_max;
        if input_bytes > bytes_max {
            return Err(EngineError::InputTooLarge { bytes: input_bytes, bytes_max });
        }
        if open >= open_max {
            return Err(EngineError::TooManyOpen { open_max });
        }
        // Queued tasks go first, unless their time has not come or their owners have no place for them.
        let claimed =
            state.workers.allows(owner, 1) && state.next_claim().is_none() && state.places.take(owner, 1).is_some();
        if claimed {
            state.workers.add(owner, 1);
        } else if state.queue.take(owner, 1).is_none() {
            return Err(EngineError::QueueFull { queued_max: state.limits.queued_max });
        }
        let tool = state.tool.clone();
        self.count_open(owner, 1);
        let commit = self.commits.begin();
        Ok(Admission { tool, claimed, commit })
    }

    pub(super) fn created(
        &mut self,
        key: TaskKey,
        tool: &ToolRef,
        claimed: Option<u64>,
        commit: CommitId,
    ) -> Vec<Action> {
        let actions = match claimed {
            Some(fence) => self.begin(key, tool, fence),
            // A worker may have become free between the admission and the commit.
            None => self.offer(tool),
        };
        self.commits.end(commit);
        actions
    }

    pub(super) fn not_created(
        &mut self,
        owner: &Owner,
        tool: &ToolRef,
        claimed: bool,
        commit: CommitId,
    ) -> Vec<Action> {
        self.commits.end(commit);
        self.count_open(owner, -1);
        if let Some(state) = self.tool(tool) {
            if claimed {
                state.free_worker(owner);
                state.free_place(owner);
            } else {
                state.queue.give_back(owner, 1);
            }
        }
        self.assign_workers(tool)
    }
}
