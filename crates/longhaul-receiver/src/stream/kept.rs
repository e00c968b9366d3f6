//! Memory of streams for clients that may come back, shared by all owners.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use longhaul_engine::{Budget, BudgetUse, Share};
use longhaul_task::Owner;
use parking_lot::Mutex;

use super::MessageStream;

/// What a stream without a connection counts beside its messages: its own state, and that of the request it answers.
pub(super) const STREAM_BYTES: usize = 8 << 10;

/// The memory of all streams. Past an owner's share, its oldest streams lose what they keep.
pub(crate) struct KeptBytes {
    budget: Arc<Budget>,
    /// Streams that keep something, by owner, in the order in which they began to.
    streams: Mutex<HashMap<Owner, BTreeMap<u64, Weak<MessageStream>>>>,
    places: AtomicU64,
}

impl KeptBytes {
    pub(crate) fn new(bytes_max: usize) -> Arc<Self> {
        let budget = Budget::new("kept_bytes", bytes_max);
        Arc::new(Self { budget, streams: Mutex::default(), places: AtomicU64::new(0) })
    }

    pub(crate) fn usage(&self) -> BudgetUse {
        self.budget.usage()
    }

    pub(crate) fn of(self: &Arc<Self>, owner: &Owner) -> OwnerKeptBytes {
        OwnerKeptBytes { owner: owner.clone(), all: Arc::clone(self) }
    }
}

/// The memory of the streams of one owner.
pub(crate) struct OwnerKeptBytes {
    owner: Owner,
    all: Arc<KeptBytes>,
}

impl OwnerKeptBytes {
    /// Takes memory, from the owner's oldest streams if need be. `None` if they have none to give. Call it without the lock
    /// of a stream.
    pub(super) fn take(&self, bytes: usize) -> Option<Share> {
        loop {
            match self.all.budget.take(&self.owner, bytes) {
                None if self.forget_oldest() => {}
                share => return share,
            }
        }
    }

    fn forget_oldest(&self) -> bool {
        let oldest = || {
            let streams = self.all.streams.lock();
            streams.get(&self.owner)?.first_key_value().map(|(place, stream)| (*place, Weak::clone(stream)))
        };
        while let Some((place, stream)) = oldest() {
            if stream.upgrade().is_some_and(|stream| stream.forget_oldest()) {
                return true;
            }
            self.remove(place);
        }
        false
    }

    /// Adds a stream that begins to keep something. Returns its place.
    pub(super) fn add(&self, stream: &Weak<MessageStream>) -> u64 {
        let place = self.all.places.fetch_add(1, Ordering::Relaxed);
        self.all.streams.lock().entry(self.owner.clone()).or_default().insert(place, Weak::clone(stream));
        place
    }

    pub(super) fn remove(&self, place: u64) {
        let mut streams = self.all.streams.lock();
        if let Some(of_owner) = streams.get_mut(&self.owner) {
            of_owner.remove(&place);
            if of_owner.is_empty() {
                streams.remove(&self.owner);
            }
        }
    }
}

impl fmt::Debug for KeptBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptBytes").field("usage", &self.usage()).finish_non_exhaustive()
    }
}
