//! Whether the clock goes back.

use longhaul_task::Timestamp;

/// Compares readings of the clock.
#[derive(Debug, Default)]
pub struct ClockWatch {
    latest: Timestamp,
}

impl ClockWatch {
    /// By how many milliseconds the clock has gone back since the latest reading that was [accepted](Self::accept).
    pub fn went_back_ms(&self, now: Timestamp) -> Option<u64> {
        let back_ms = self.latest.ms_since(now);
        (back_ms > 0).then_some(back_ms)
    }

    /// Everything that follows from this reading was done.
    pub fn accept(&mut self, now: Timestamp) {
        self.latest = now;
    }
}
