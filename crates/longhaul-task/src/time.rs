//! Time, as the store tells it.

use serde::{Deserialize, Serialize};

/// A moment: milliseconds since the Unix epoch. Only the store's clock makes these; the machine itself asks no clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The beginning of time: earlier than everything a store says.
    pub const ZERO: Self = Self(0);

    /// The moment this many milliseconds after the epoch.
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms)
    }

    /// Milliseconds since the epoch.
    pub const fn as_ms(self) -> u64 {
        self.0
    }

    /// This moment and `ms` more; the end of time where that does not fit.
    pub const fn plus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// How many milliseconds after `earlier` this is; zero if it is not.
    pub const fn ms_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}
