//! How owners share a resource: the rule by itself, without a lock, for [`Budget`](crate::Budget) and for the core.
//!
//! No owner can use the resource up: an owner may take more only while its own use stays within [`FREE_SHARE`] times what
//! is free. So one owner alone gets at most three quarters, owners that all want more get equal parts in the long run, and
//! something is left for an owner that comes later. This needs no list of possible owners, and nothing is taken back
//! from an owner.
//!
//! Workers are few, and a quarter of them must not be idle while only one owner has work. Of these only a small reserve is
//! kept for owners that use nothing, and the owners take turns for the rest.

use std::collections::BTreeMap;

use longhaul_task::Owner;

use crate::BudgetUse;

/// How many times the free part an owner may use.
const FREE_SHARE: usize = 3;

/// When an owner that uses some of a resource may take more of it.
#[derive(Debug, Clone, Copy)]
enum Rule {
    /// While its use stays within [`FREE_SHARE`] times what is free.
    FreeShare,
    /// While more than this is free.
    Reserve(usize),
}

/// Who uses how much of a resource.
#[derive(Debug)]
pub(crate) struct Shares {
    capacity: usize,
    rule: Rule,
    total: isize,
    /// Without the owners that use nothing. News of commits overtake each other, so that the core may hear that a task
    /// has left the queue before it hears that it was there: then a use is below zero for a moment.
    uses: BTreeMap<Owner, isize>,
    refused: u64,
}

impl Shares {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { capacity, rule: Rule::FreeShare, total: 0, uses: BTreeMap::new(), refused: 0 }
    }

    /// Only the last `reserve` units are kept, for owners that use nothing.
    pub(crate) fn with_reserve(capacity: usize, reserve: usize) -> Self {
        Self { rule: Rule::Reserve(reserve), ..Self::new(capacity) }
    }

    /// How much is in use.
    pub(crate) fn total(&self) -> usize {
        usize::try_from(self.total).unwrap_or(0)
    }

    pub(crate) fn of(&self, owner: &Owner) -> usize {
        self.uses.get(owner).map_or(0, |own| usize::try_from(*own).unwrap_or(0))
    }

    pub(crate) fn free(&self) -> usize {
        self.capacity.saturating_sub(self.total())
    }

    /// Whether an owner may take an amount at once. An owner that uses nothing gets anything that is free.
    pub(crate) fn allows(&self, owner: &Owner, amount: usize) -> bool {
        let (own, free) = (self.of(owner), self.free());
        let allows_more = || match self.rule {
            Rule::FreeShare => own.saturating_add(amount) <= free.saturating_mul(FREE_SHARE),
            Rule::Reserve(reserve) => amount <= free.saturating_sub(reserve),
        };
        amount <= free && (own == 0 || allows_more())
    }

    /// Takes an amount if the owner may have it. What is larger than the whole is taken if nothing else is in use:
    /// otherwise it could never be served.
    pub(crate) fn take(&mut self, owner: &Owner, amount: usize) -> Option<usize> {
        let amount = amount.min(self.capacity.max(1));
        if self.allows(owner, amount) {
            self.add(owner, amount);
            Some(amount)
        } else {
            self.refused += 1;
            None
        }
    }

    /// Counts an amount that the owner has, whether it may or not.
    pub(crate) fn add(&mut self, owner: &Owner, amount: usize) {
        self.change(owner, isize::try_from(amount).unwrap_or(isize::MAX));
    }

    pub(crate) fn give_back(&mut self, owner: &Owner, amount: usize) {
        self.change(owner, -isize::try_from(amount).unwrap_or(isize::MAX));
    }

    fn change(&mut self, owner: &Owner, by: isize) {
        let before = self.uses.get(owner).copied().unwrap_or(0);
        let own = before.saturating_add(by);
        // A use below zero must not hide the use of another owner.
        self.total = self.total.saturating_add(own.max(0) - before.max(0));
        match self.uses.get_mut(owner) {
            Some(_) if own == 0 => drop(self.uses.remove(owner)),
            Some(current) => *current = own,
            None if own == 0 => {}
            None => drop(self.uses.insert(owner.clone(), own)),
        }
    }

    /// Counts an amount whose owners are not known yet.
    pub(crate) fn set_aside(&mut self, amount: usize) {
        self.total = self.total.saturating_add_unsigned(amount);
    }

    /// Ends what [`set_aside`](Self::set_aside) began.
    pub(crate) fn take_back(&mut self, amount: usize) {
        self.total = self.total.saturating_sub_unsigned(amount);
    }

    /// Nothing is in use.
    pub(crate) fn clear(&mut self) {
        self.total = 0;
        self.uses.clear();
    }

    /// How many units an owner that uses nothing may take, one after the other.
    pub(crate) fn room_for_new(&self) -> usize {
        self.room(0)
    }

    /// The owners that may take less than `amount` units, one after the other, each with that number. An owner that uses
    /// nothing is not among them.
    pub(crate) fn room_below(&self, amount: usize) -> BTreeMap<Owner, usize> {
        // Not even an owner that used all of it would be among them.
        if self.room(self.total()) >= amount {
            return BTreeMap::new();
        }
        let rooms = self.uses.keys().map(|owner| (owner.clone(), self.room(self.of(owner))));
        rooms.filter(|(_, room)| *room < amount).collect()
    }

    /// How many units an owner that uses `own` may take. Before the unit number n it uses `own + n - 1`, and
    /// `free - (n - 1)` are free.
    fn room(&self, own: usize) -> usize {
        let free = self.free();
        let room = match self.rule {
            Rule::FreeShare => {
                free.saturating_mul(FREE_SHARE).saturating_add(FREE_SHARE).saturating_sub(own) / (FREE_SHARE + 1)
            }
            Rule::Reserve(reserve) => free.saturating_sub(reserve).max(usize::from(own == 0)),
        };
        room.min(free)
    }

    pub(crate) fn usage(&self, resource: &'static str) -> BudgetUse {
        let Self { capacity, uses, refused, .. } = self;
        BudgetUse { resource, capacity: *capacity, used: self.total(), owners: uses.len(), refused: *refused }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn owner(n: usize) -> Owner {
        Owner::parse(&format!("owner {n}")).unwrap()
    }

    #[test]
    fn a_use_below_zero_hides_no_use_of_another_owner() {
        let mut shares = Shares::new(1);
        assert_eq!(shares.take(&owner(1), 1), Some(1));
        // The core hears that a task of this owner has left the queue before it hears that it was there.
        shares.give_back(&owner(2), 1);
        assert_eq!(shares.take(&owner(3), 1), None);
        shares.add(&owner(2), 1);
        assert_eq!(shares.total(), 1);
    }

    proptest! {
        #[test]
        fn the_room_of_an_owner_is_the_number_of_units_that_it_gets(
            capacity in 0_usize..50, reserve in prop::option::of(0_usize..10),
            uses in prop::collection::vec(0_usize..20, 1..5),
        ) {
            let mut shares = match reserve {
                None => Shares::new(capacity),
                Some(reserve) => Shares::with_reserve(capacity, reserve),
            };
            for (n, own) in uses.iter().enumerate() {
                shares.add(&owner(n), *own);
            }
            let rooms = shares.room_below(usize::MAX);
            for (n, own) in uses.iter().enumerate() {
                let room = rooms.get(&owner(n)).copied().unwrap_or_else(|| shares.room_for_new());
                prop_assert_eq!(rooms.contains_key(&owner(n)), *own > 0);
                let mut shares = Shares { uses: shares.uses.clone(), ..shares };
                let taken = (0..100).take_while(|_| shares.take(&owner(n), 1).is_some()).count();
                prop_assert_eq!(taken, room);
            }
        }
    }
}
