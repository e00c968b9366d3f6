//! The sources of time for an embedded store.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use longhaul_task::Timestamp;

/// The source of every timestamp of an embedded store.
pub trait Clock: Send + Sync + fmt::Debug + 'static {
    /// The current time.
    fn now(&self) -> Timestamp;
}

/// The clock of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_ms(u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX))
    }
}

/// Remembers the latest reading of a clock, to notice when the clock goes back.
#[derive(Debug)]
pub(crate) struct ClockWatch {
    latest_ms: AtomicU64,
}

impl Default for ClockWatch {
    /// A process that has died may have read any time.
    fn default() -> Self {
        Self { latest_ms: AtomicU64::new(u64::MAX) }
    }
}

/// The clock shows an earlier time than it did before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClockSetBack {
    latest_ms: u64,
    now: Timestamp,
}

impl ClockSetBack {
    /// By how much. `None` if the earlier readings are those of another process.
    pub(crate) fn back_ms(self) -> Option<u64> {
        (self.latest_ms != u64::MAX).then(|| self.latest_ms - self.now.as_ms())
    }
}

impl ClockWatch {
    pub(crate) fn note(&self, now: Timestamp) {
        self.latest_ms.fetch_max(now.as_ms(), Ordering::SeqCst);
    }

    /// Compares with all readings since the last jump that was [handled](Self::handled).
    pub(crate) fn compare(&self, now: Timestamp) -> Option<ClockSetBack> {
        let latest_ms = self.latest_ms.load(Ordering::SeqCst);
        (now.as_ms() < latest_ms).then_some(ClockSetBack { latest_ms, now })
    }

    /// Nothing is left of what began by the readings before this jump. A jump that was noted meanwhile is not forgotten.
    pub(crate) fn handled(&self, jump: ClockSetBack) -> bool {
        let (before, now_ms) = (jump.latest_ms, jump.now.as_ms());
        self.latest_ms.compare_exchange(before, now_ms, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }
}

/// A clock that only moves when it is set, forwards or backwards. For tests and the simulator.
#[derive(Debug, Clone, Default)]
pub struct ManualClock(Arc<AtomicU64>);

impl ManualClock {
    /// A clock that shows `now`.
    pub fn at(now: Timestamp) -> Self {
        Self(Arc::new(AtomicU64::new(now.as_ms())))
    }

    /// Sets the clock to `now`.
    pub fn set(&self, now: Timestamp) {
        self.0.store(now.as_ms(), Ordering::SeqCst);
    }

    /// Moves the clock forward by `ms`.
    pub fn advance_ms(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_ms(self.0.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_reading_below_any_earlier_one_is_noticed_until_it_is_handled(
            readings in prop::collection::vec((0_u64..1_000, any::<bool>()), 1..20)
        ) {
            let watch = ClockWatch::default();
            let mut latest = None;
            for (ms, is_looked_at) in readings {
                let now = Timestamp::from_ms(ms);
                if is_looked_at {
                    let jump = watch.compare(now);
                    prop_assert_eq!(jump.is_some(), latest.is_none_or(|latest| ms < latest));
                    if let Some(jump) = jump {
                        prop_assert_eq!(jump.back_ms(), latest.map(|latest| latest - ms));
                        prop_assert!(watch.handled(jump));
                        prop_assert_eq!(watch.compare(now), None);
                        latest = Some(ms);
                    }
                }
                watch.note(now);
                latest = latest.map(|latest| latest.max(ms));
            }
        }
    }
}
