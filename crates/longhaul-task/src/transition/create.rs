use std::sync::Arc;

use crate::{ActiveAttempt, Family, NodeId, Phase, Policy, Retention, Task, TaskKey, Timestamp, ToolRef, Wait};

/// The parameters of a new task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Create {
    pub key: TaskKey,
    pub tool: ToolRef,
    /// The wire generation of the request.
    pub origin: Arc<str>,
    pub policy: Policy,
    pub retention: Retention,
    /// The node that claims the task in the same commit, if it has a free worker.
    pub claimed_by: Option<NodeId>,
    /// The first fence: 0 if the server made the ID, random if the requestor chose it. A requestor can use the ID of a
    /// deleted task again, and a late attempt of the deleted task must not be able to write to the new one.
    pub first_fence: u64,
}

/// Creates the root of a new family.
pub fn create(new: &Create, now: Timestamp) -> Task {
    let family = Family { root: new.key.id.clone(), parent: None, since: now, depth: 0, children: 0, ordinal: 0 };
    create_in_family(new, family, now, now)
}

/// Creates a task in an existing family, claimed or queued. `created_at` is later than `now` if the clock has gone back since
/// the last change of the parent.
pub(super) fn create_in_family(new: &Create, family: Family, created_at: Timestamp, now: Timestamp) -> Task {
    let claimed = u32::from(new.claimed_by.is_some());
    Task {
        key: new.key.clone(),
        family,
        tool: new.tool.clone(),
        origin: new.origin.clone(),
        policy: new.policy.clone(),
        retention: new.retention,
        created_at,
        updated_at: created_at,
        revision: 1,
        fence: new.first_fence.saturating_add(claimed.into()),
        attempt: claimed,
        failed_attempts: 0,
        questions_asked: 0,
        message: None,
        phase: match new.claimed_by {
            Some(node) => Phase::Running { run: ActiveAttempt::claimed(node, now) },
            None => Phase::Queued { wait: Wait::until(now, now) },
        },
    }
}
