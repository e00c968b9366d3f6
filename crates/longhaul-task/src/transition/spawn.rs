use super::create::{Create, create_in_family};
use crate::{
    CHILDREN_MAX, Change, DEPTH_MAX, Effect, Family, JournalEntry, JournalWrite, Json, Task, TaskKey, Timestamp,
    TransitionError,
};

/// The attempt creates children, all in one commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spawn {
    pub fence: u64,
    pub children: Vec<NewChild>,
    /// The journal entries of the children.
    pub entries: Vec<JournalEntry>,
}

/// A child to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewChild {
    /// The owner and the retention given here are ignored: a child has those of its family.
    pub create: Create,
    /// The arguments of the child.
    pub input: Json,
}

pub(super) fn apply(task: &Task, event: &Spawn, now: Timestamp) -> Result<Change, TransitionError> {
    task.check_fence(event.fence)?;
    let more = u32::try_from(event.children.len()).unwrap_or(u32::MAX);
    if task.family.children.saturating_add(more) > CHILDREN_MAX {
        return Err(TransitionError::TooManyChildren);
    }
    if task.family.depth >= DEPTH_MAX {
        return Err(TransitionError::TooDeep);
    }
    let mut change = Change::new(task.next_revision(now));
    for NewChild { create, input } in &event.children {
        let child = spawn(&mut change.task, create, now)?;
        change.effects.push(Effect::Spawned { key: child.key.clone() });
        if create.claimed_by.is_none() {
            change.effects.push(Effect::queued(&child, now));
        }
        change.children.push((child, input.clone()));
    }
    let entries = event.entries.iter().map(|entry| JournalWrite::Insert(entry.clone().written_by(task, now)));
    change.journal.extend(entries);
    Ok(change)
}

fn spawn(parent: &mut Task, create: &Create, now: Timestamp) -> Result<Task, TransitionError> {
    if create.key.id == parent.key.id {
        return Err(TransitionError::DuplicateId);
    }
    let family = Family {
        root: parent.family.root.clone(),
        parent: Some(parent.key.id.clone()),
        since: parent.family.since,
        depth: parent.family.depth + 1,
        children: 0,
        ordinal: parent.family.children,
    };
    parent.family.children += 1;
    let mut create = create.clone();
    create.key = TaskKey { owner: parent.key.owner.clone(), id: create.key.id };
    create.retention = parent.retention;
    Ok(create_in_family(&create, family, parent.updated_at, now))
}
