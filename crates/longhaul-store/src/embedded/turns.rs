//! Whose turn it is: the owners that have queued tasks of a tool, and the one that was served last.
//!
//! The writer keeps this in memory, so that a claim looks only at owners it can serve: neither the number of queued tasks
//! nor that of other owners makes it slower. It may name an owner that has no task any more, but never misses one that
//! has: tasks enter the queue through the writer alone.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};

use longhaul_task::{Owner, Timestamp, ToolRef};

/// The turns of every tool of which tasks were claimed.
#[derive(Debug, Default)]
pub(super) struct Turns(BTreeMap<ToolRef, ToolTurns>);

#[derive(Debug, Default)]
pub(super) struct ToolTurns {
    /// Each owner with the earliest time of its queued tasks.
    owners: BTreeMap<Owner, Timestamp>,
    /// Owners whose time had come at the last look.
    ready: BTreeSet<Owner>,
    /// The others, by their time.
    later: BTreeSet<(Timestamp, Owner)>,
    last_served: Option<Owner>,
}

impl Turns {
    /// The turns of a tool, if they are known.
    pub(super) fn of(&mut self, tool: &ToolRef) -> Option<&mut ToolTurns> {
        self.0.get_mut(tool)
    }

    /// Takes over the owners that have queued tasks of a tool, each with the earliest time.
    pub(super) fn load(&mut self, tool: &ToolRef, owners: Vec<(Owner, Timestamp)>) -> &mut ToolTurns {
        let turns = self.0.entry(tool.clone()).or_default();
        for (owner, at) in owners {
            turns.queued(&owner, at);
        }
        turns
    }

    /// Forgets everything. The next claim reads it from the disk.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

impl ToolTurns {
    /// A task of the owner is in the queue, and may be claimed from `at` on.
    pub(super) fn queued(&mut self, owner: &Owner, at: Timestamp) {
        match self.owners.get(owner) {
            Some(earliest) if *earliest <= at => return,
            Some(earliest) => self.later.remove(&(*earliest, owner.clone())),
            None => false,
        };
        self.owners.insert(owner.clone(), at);
        self.later.insert((at, owner.clone()));
    }

    /// The next owners in turn, after the one that was served last: at most so many, and only those that may be served.
    pub(super) fn next(&mut self, now: Timestamp, limit: usize, may: impl Fn(&Owner) -> bool) -> Vec<Owner> {
        while let Some((at, _)) = self.later.first()
            && *at <= now
            && let Some((_, owner)) = self.later.pop_first()
        {
            self.ready.insert(owner);
        }
        let last = self.last_served.as_ref();
        let after = self.ready.range((last.map_or(Unbounded, Excluded), Unbounded));
        let up_to_last = last.into_iter().flat_map(|last| self.ready.range::<Owner, _>(..=last));
        after.chain(up_to_last).filter(|owner| may(owner)).take(limit).cloned().collect()
    }

    /// The owner has had its turn. `next` is the time of its first task that is still queued.
    pub(super) fn served(&mut self, owner: Owner, next: Option<Timestamp>) {
        if let Some(earliest) = self.owners.remove(&owner) {
            self.later.remove(&(earliest, owner.clone()));
        }
        self.ready.remove(&owner);
        if let Some(at) = next {
            self.queued(&owner, at);
        }
        self.last_served = Some(owner);
    }
}
