//! A resource that all owners share, such as memory for unread responses, by the rule in [`shares`](crate::shares).

use std::sync::Arc;

use longhaul_task::Owner;
use parking_lot::Mutex;

use crate::shares::Shares;

/// Counts the use of a resource by owner. No owner can use it up: one alone gets at most three quarters, and owners that all
/// want more get equal parts in the long run.
#[derive(Debug)]
pub struct Budget {
    resource: &'static str,
    shares: Mutex<Shares>,
}

/// The state of a budget, for metrics. Budgets of the same resource can be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct BudgetUse {
    pub resource: &'static str,
    pub capacity: usize,
    pub used: usize,
    /// Owners that use some of it. In a sum, an owner counts once for each budget.
    pub owners: usize,
    /// Requests that were refused since the start.
    pub refused: u64,
}

impl BudgetUse {
    /// Adds the use of another budget of the same resource.
    pub(crate) fn add(&mut self, other: &Self) {
        self.capacity = self.capacity.saturating_add(other.capacity);
        self.used += other.used;
        self.owners += other.owners;
        self.refused += other.refused;
    }
}

impl Budget {
    /// A budget that nothing has been taken from. `resource` is its name in metrics.
    pub fn new(resource: &'static str, capacity: usize) -> Arc<Self> {
        Arc::new(Self { resource, shares: Mutex::new(Shares::new(capacity)) })
    }

    /// Takes an amount for an owner until the share is dropped. `None` if the owner's part is used up.
    ///
    /// An owner that uses nothing gets anything that is free, and what is larger than the whole budget if nothing else is
    /// in use: otherwise it could never be served.
    pub fn take(self: &Arc<Self>, owner: &Owner, amount: usize) -> Option<Share> {
        let amount = self.shares.lock().take(owner, amount)?;
        Some(Share { budget: Arc::clone(self), owner: owner.clone(), amount })
    }

    pub fn usage(&self) -> BudgetUse {
        self.shares.lock().usage(self.resource)
    }
}

/// An amount of a [`Budget`] that an owner uses. Dropping it gives the amount back.
#[derive(Debug)]
pub struct Share {
    budget: Arc<Budget>,
    owner: Owner,
    amount: usize,
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.shares.lock().give_back(&self.owner, self.amount);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn owner(n: usize) -> Owner {
        Owner::parse(&format!("owner {n}")).unwrap()
    }

    /// Takes single units until the budget refuses.
    fn take_all(budget: &Arc<Budget>, owner: &Owner) -> Vec<Share> {
        std::iter::from_fn(|| budget.take(owner, 1)).collect()
    }

    #[test]
    fn one_owner_gets_three_quarters_and_leaves_the_rest_to_others() {
        let budget = Budget::new("calls", 256);
        let first = take_all(&budget, &owner(1));
        let second = take_all(&budget, &owner(2));
        let third = take_all(&budget, &owner(3));
        assert_eq!((first.len(), second.len(), third.len()), (192, 48, 12));
    }

    #[test]
    fn owners_that_always_want_more_end_with_equal_parts() {
        let budget = Budget::new("calls", 256);
        let mut held = [take_all(&budget, &owner(0)), Vec::new(), Vec::new()];
        for round in 0..2_000 {
            held[round % 3].truncate(held[round % 3].len().saturating_sub(1));
            for (n, shares) in held.iter_mut().enumerate() {
                shares.extend(take_all(&budget, &owner(n)));
            }
        }
        let (least, most) = (held.iter().map(Vec::len).min(), held.iter().map(Vec::len).max());
        assert!(most.unwrap() - least.unwrap() <= 8, "{held:?}", held = held.each_ref().map(Vec::len));
    }

    #[test]
    fn something_larger_than_the_budget_is_taken_when_nothing_is_in_use() {
        let budget = Budget::new("bytes", 100);
        let whole = budget.take(&owner(1), 1_000).unwrap();
        assert!(budget.take(&owner(2), 1).is_none());
        drop(whole);
        assert!(budget.take(&owner(2), 1).is_some());
    }

    proptest! {
        #[test]
        fn the_budget_is_never_exceeded_and_everything_comes_back(
            takes in prop::collection::vec((0_usize..4, 1_usize..300, any::<bool>()), 0..200),
        ) {
            let budget = Budget::new("bytes", 1_000);
            let mut held = Vec::new();
            for (n, amount, gives_back) in takes {
                held.extend(budget.take(&owner(n), amount));
                if gives_back {
                    held.pop();
                }
                prop_assert!(budget.usage().used <= 1_000);
            }
            drop(held);
            let BudgetUse { used, owners, .. } = budget.usage();
            prop_assert_eq!((used, owners), (0, 0));
        }
    }
}
