use std::sync::Arc;

use crate::{Family, NodeId, Phase, Policy, Retention, Run, Task, TaskKey, Timestamp, ToolRef};

/// A task to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Create {
    /// Owner and public ID.
    pub key: TaskKey,
    /// The tool that will carry it out.
    pub tool: ToolRef,
    /// Which wire generation asks for it.
    pub origin: Arc<str>,
    /// How it may run.
    pub policy: Policy,
    /// How long it is kept.
    pub retention: Retention,
    /// The node that has a worker free and takes it in the same commit.
    pub claimed_by: Option<NodeId>,
    /// Where its fences begin. Zero for an ID that was minted for it. A requestor can give the ID of a deleted task to a
    /// new one, and a late attempt of the first must not pass for one of the second: for such an ID it is random.
    pub fences_from: u64,
}

/// Makes a task at the top of a new family.
pub fn create(new: &Create, now: Timestamp) -> Task {
    let family = Family { root: new.key.id.clone(), parent: None, since: now, depth: 0, children: 0, ordinal: 0 };
    born(new, family, now)
}

/// A new task in its family, claimed or queued.
pub(super) fn born(new: &Create, family: Family, now: Timestamp) -> Task {
    let claimed = u32::from(new.claimed_by.is_some());
    Task {
        key: new.key.clone(),
        family,
        tool: new.tool.clone(),
        origin: new.origin.clone(),
        policy: new.policy.clone(),
        retention: new.retention,
        created_at: now,
        updated_at: now,
        revision: 1,
        fence: new.fences_from.saturating_add(claimed.into()),
        attempt: claimed,
        spent: 0,
        questions_asked: 0,
        message: None,
        phase: match new.claimed_by {
            Some(node) => Phase::Running { run: Run { node, since: now } },
            None => Phase::Queued { not_before: now },
        },
    }
}
