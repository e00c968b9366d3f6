//! Attempts that have their answer and wait for a worker.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound::{Excluded, Unbounded};

use longhaul_task::{Owner, TaskKey};

/// Owners take turns: the answers of one owner, however many, do not keep the workers from another.
#[derive(Debug, Default)]
pub(super) struct Resuming {
    by_owner: BTreeMap<Owner, VecDeque<(TaskKey, u64)>>,
    last_served: Option<Owner>,
}

impl Resuming {
    pub(super) fn push(&mut self, key: TaskKey, fence: u64) {
        self.by_owner.entry(key.owner.clone()).or_default().push_back((key, fence));
    }

    /// The attempt that has waited longest among those of the owner whose turn it is, of those that may have a worker.
    pub(super) fn pop(&mut self, may_work: impl Fn(&Owner) -> bool) -> Option<(TaskKey, u64)> {
        let after_last = self.last_served.as_ref().map_or(Unbounded, Excluded);
        let in_turn = self.by_owner.range((after_last, Unbounded)).chain(&self.by_owner);
        let owner = in_turn.map(|(owner, _)| owner).find(|owner| may_work(owner))?.clone();
        let attempts = self.by_owner.get_mut(&owner)?;
        let attempt = attempts.pop_front();
        if attempts.is_empty() {
            self.by_owner.remove(&owner);
        }
        self.last_served = Some(owner);
        attempt
    }
}
