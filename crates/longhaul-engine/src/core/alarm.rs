//! When a service that sleeps has to wake.

use std::sync::atomic::{AtomicU64, Ordering};

use longhaul_task::Timestamp;

/// An alarm that can only be set earlier. Most changes of a task do not move the earliest due moment, so the sleeper
/// is left alone unless one does.
#[derive(Debug)]
pub struct Alarm(AtomicU64);

impl Default for Alarm {
    fn default() -> Self {
        Self(AtomicU64::new(u64::MAX))
    }
}

impl Alarm {
    /// Sets it to this moment, unless it is set to an earlier one; says whether it was moved, so that a sleeper who
    /// went by the later moment has to be told. The sleeper itself, when it sets it, knows.
    pub fn set(&self, at: Option<Timestamp>) -> bool {
        at.is_some_and(|at| self.0.fetch_min(at.as_ms(), Ordering::SeqCst) > at.as_ms())
    }

    /// The sleeper is about to look: whatever is set from now on counts.
    pub fn reset(&self) {
        self.0.store(u64::MAX, Ordering::SeqCst);
    }

    /// The moment that is set.
    pub fn at(&self) -> Option<Timestamp> {
        let at_ms = self.0.load(Ordering::SeqCst);
        (at_ms != u64::MAX).then(|| Timestamp::from_ms(at_ms))
    }
}
