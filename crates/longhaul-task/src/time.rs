//! Time, as the store tells it.

use serde::{Deserialize, Serialize};

/// A moment: milliseconds since the Unix epoch. Only the store's clock makes these; the machine itself asks no clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The beginning of time: earlier than everything a store says.
    pub const ZERO: Self = Self(0);

    /// The end of time: what every database can hold in a signed integer.
    pub const MAX: Self = Self(i64::MAX as u64);

    /// The moment this many milliseconds after the epoch, [`MAX`](Self::MAX) at the latest.
    pub const fn from_ms(ms: u64) -> Self {
        if ms > Self::MAX.0 { Self::MAX } else { Self(ms) }
    }

    /// Milliseconds since the epoch.
    pub const fn as_ms(self) -> u64 {
        self.0
    }

    /// This moment and `ms` more; the end of time where that does not fit.
    pub const fn plus_ms(self, ms: u64) -> Self {
        Self::from_ms(self.0.saturating_add(ms))
    }

    /// How many milliseconds after `earlier` this is; zero if it is not.
    pub const fn ms_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unlimited_limit_ends_at_the_end_of_time_and_not_before_it_began() {
        let forever = Timestamp::from_ms(1_700_000_000_000).plus_ms(u64::MAX);
        assert_eq!(forever, Timestamp::MAX);
        assert!(i64::try_from(forever.as_ms()).is_ok());
    }
}
