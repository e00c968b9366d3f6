use super::create::{Create, born};
use crate::{CHILDREN_MAX, Change, DEPTH_MAX, Effect, Family, Json, Refused, Task, TaskKey, Timestamp};

/// The attempt makes a child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spawn {
    /// The attempt's fence.
    pub fence: u64,
    /// The child. Its owner and its retention are the family's, whatever stands here.
    pub child: Create,
    /// The child's arguments.
    pub input: Json,
}

pub(super) fn apply(task: &Task, event: &Spawn, now: Timestamp) -> Result<Change, Refused> {
    task.must_hold(event.fence)?;
    if task.family.children >= CHILDREN_MAX {
        return Err(Refused::TooManyChildren);
    }
    if task.family.depth >= DEPTH_MAX {
        return Err(Refused::TooDeep);
    }
    if event.child.key.id == task.key.id {
        return Err(Refused::Duplicate);
    }
    let mut next = task.touched(now);
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
    let child = born(&new, family, next.updated_at);
    let queued = new.claimed_by.is_none().then(|| Effect::queued(&child, child.created_at));
    let mut change = Change::of(next);
    change.child = Some((child, event.input.clone()));
    change.effects.extend(queued);
    Ok(change)
}
