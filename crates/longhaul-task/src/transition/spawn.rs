use super::create::{Create, create_in_family};
use crate::{CHILDREN_MAX, Change, DEPTH_MAX, Effect, Family, Json, Task, TaskKey, Timestamp, TransitionError};

/// The attempt creates a child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spawn {
    pub fence: u64,
    /// The owner and the retention given here are ignored: a child has those of its family.
    pub child: Create,
    /// The arguments of the child.
    pub input: Json,
}

pub(super) fn apply(task: &Task, event: &Spawn, now: Timestamp) -> Result<Change, TransitionError> {
    task.check_fence(event.fence)?;
    if task.family.children >= CHILDREN_MAX {
        return Err(TransitionError::TooManyChildren);
    }
    if task.family.depth >= DEPTH_MAX {
        return Err(TransitionError::TooDeep);
    }
    if event.child.key.id == task.key.id {
        return Err(TransitionError::DuplicateId);
    }
    let mut next = task.next_revision(now);
    let family = Family {
        root: task.family.root.clone(),
        parent: Some(task.key.id.clone()),
        since: task.family.since,
        depth: task.family.depth + 1,
        children: 0,
        ordinal: task.family.children,
    };
    next.family.children += 1;
    let mut new = event.child.clone();
    new.key = TaskKey { owner: task.key.owner.clone(), id: event.child.key.id.clone() };
    new.retention = task.retention;
    let child = create_in_family(&new, family, next.updated_at, now);
    let queued = new.claimed_by.is_none().then(|| Effect::queued(&child, now));
    let mut change = Change::new(next);
    change.child = Some((child, event.input.clone()));
    change.effects.extend(queued);
    Ok(change)
}
