//! Timestamps of the store's clock.

use serde::{Deserialize, Serialize};

/// Milliseconds since the Unix epoch, as read from the store's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The Unix epoch, which is earlier than every time of a store.
    pub const ZERO: Self = Self(0);

    /// The latest time that every database can store in a signed integer.
    pub const MAX: Self = Self(i64::MAX as u64);

    /// Saturates at [`MAX`](Self::MAX).
    pub const fn from_ms(ms: u64) -> Self {
        if ms > Self::MAX.0 { Self::MAX } else { Self(ms) }
    }

    pub const fn as_ms(self) -> u64 {
        self.0
    }

    /// Saturates at [`MAX`](Self::MAX).
    pub const fn plus_ms(self, ms: u64) -> Self {
        Self::from_ms(self.0.saturating_add(ms))
    }

    /// Stops at [`ZERO`](Self::ZERO).
    pub const fn minus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_sub(ms))
    }

    /// The milliseconds since `earlier`, or 0 if `earlier` is later.
    pub const fn ms_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// A wait for a time of the store's clock. It knows when it began, so that it can be shortened when the clock goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// By the clock at that time, which may have gone back since.
    pub since: Timestamp,
    pub until: Timestamp,
}

impl Wait {
    pub const fn until(now: Timestamp, until: Timestamp) -> Self {
        Self { since: now, until }
    }

    pub const fn of_ms(now: Timestamp, ms: u64) -> Self {
        Self::until(now, now.plus_ms(ms))
    }

    /// The wait that is left by a clock that shows `now`. If that is before the beginning of the wait, the clock has gone
    /// back. How much of the wait has passed is then unknown, so it begins again and takes its own length, not the length
    /// of the jump in addition.
    pub fn by_clock(self, now: Timestamp) -> Self {
        if self.since <= now { self } else { Self::of_ms(now, self.until.ms_since(self.since)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adding_more_time_than_fits_gives_the_latest_timestamp() {
        let forever = Timestamp::from_ms(1_700_000_000_000).plus_ms(u64::MAX);
        assert_eq!(forever, Timestamp::MAX);
        assert!(i64::try_from(forever.as_ms()).is_ok());
    }
}
