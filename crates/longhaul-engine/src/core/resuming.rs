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

    /// The attempt that has waited longest among those of the owner whose turn it is.
    pub(super) fn pop(&mut self) -> Option<(TaskKey, u64)> {
        let after_last = self.last_served.as_ref().map_or(Unbounded, Excluded);
        let next = self.by_owner.range((after_last, Unbounded)).next().or_else(|| self.by_owner.first_key_value());
        let owner = next.map(|(owner, _)| owner.clone())?;
        let attempts = self.by_owner.get_mut(&owner)?;
        let attempt = attempts.pop_front();
        if attempts.is_empty() {
            self.by_owner.remove(&owner);
        }
        self.last_served = Some(owner);
        attempt
    }
}
