//! How long a settled family is kept.

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// The minimum time for which a result can be read after the task has ended. It is shorter for a task whose retention and
/// half of whose age are both shorter: then it is the longer of these two. Without it, a task that works longer than a
/// retention from its creation would be deleted as soon as it ends.
pub const COLLECT_MS_MIN: u64 = 10 * 60 * 1_000;

/// The shortest time by which the retention of a task that works is ahead of the task.
pub const AHEAD_MS_MIN: u64 = 100;

/// How long a family is kept. Only settled families expire; `ttl`, `ttlMs` and `keepAlive` are views of this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Retention {
    /// Milliseconds from the creation of the root.
    FromCreation(u64),
    /// Milliseconds from the end of the root.
    FromEnd(u64),
    /// Until it is deleted explicitly.
    Unlimited,
}

impl Retention {
    /// The time from which a family may be deleted whose root was created at `created_at` and ended at `settled_at`.
    pub fn expires_at(self, created_at: Timestamp, settled_at: Timestamp) -> Option<Timestamp> {
        match self {
            Self::FromCreation(ms) => {
                let to_collect = settled_at.plus_ms(ahead_ms(ms, settled_at.ms_since(created_at)));
                Some(created_at.plus_ms(ms).max(to_collect))
            }
            Self::FromEnd(ms) => Some(settled_at.plus_ms(ms)),
            Self::Unlimited => None,
        }
    }

    /// The time at which the promise of [`promised_until`](Self::promised_until) is almost over. Only a retention from
    /// creation can be over while its task works.
    pub fn renew_at(self, created_at: Timestamp, updated_at: Timestamp) -> Option<Timestamp> {
        let Self::FromCreation(ms) = self else { return None };
        let ahead_ms = ahead_ms(ms, updated_at.ms_since(created_at));
        self.expires_at(created_at, updated_at).map(|until| until.minus_ms(ahead_ms / 2))
    }

    /// This retention, limited to `ms_max`. A retention from creation stays one: the TTL that a requestor has seen must
    /// not shrink, and that of a retention from the end would when the task ends.
    pub fn at_most(self, ms_max: u64) -> Self {
        match self {
            Self::FromCreation(ms) => Self::FromCreation(ms.min(ms_max)),
            Self::FromEnd(ms) => Self::FromEnd(ms.min(ms_max)),
            Self::Unlimited => Self::FromCreation(ms_max),
        }
    }

    /// The time until which a family is kept at least that was created at `created_at` and had not ended at `updated_at`. It
    /// can only grow while the task works, because the end is later. For a retention from the end it is the latest
    /// possible time, because the end is known only to come before `life`.
    pub fn promised_until(self, created_at: Timestamp, updated_at: Timestamp, life: Timestamp) -> Option<Timestamp> {
        match self {
            Self::FromEnd(_) => self.expires_at(created_at, life),
            Self::FromCreation(_) | Self::Unlimited => self.expires_at(created_at, updated_at),
        }
    }
}

/// How far the retention of a task that is `age_ms` old is ahead of it. It grows with the task, so that a task that waits for
/// days is renewed seldom, and begins with the time that every result is kept.
fn ahead_ms(ms: u64, age_ms: u64) -> u64 {
    ms.max(age_ms / 2).clamp(AHEAD_MS_MIN, COLLECT_MS_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CREATED: Timestamp = Timestamp::from_ms(1_000_000);

    #[test]
    fn work_that_outlasts_its_retention_leaves_time_to_collect_the_result() {
        let end = CREATED.plus_ms(1_000_000);
        let expires = Retention::FromCreation(900_000).expires_at(CREATED, end).unwrap();
        assert_eq!(expires, end.plus_ms(COLLECT_MS_MIN));
        let soon = CREATED.plus_ms(3_000);
        let short = Retention::FromCreation(2_000).expires_at(CREATED, soon).unwrap();
        assert_eq!(short, soon.plus_ms(2_000));
        let late = CREATED.plus_ms(100_000_000);
        let expires = Retention::FromCreation(2_000).expires_at(CREATED, late).unwrap();
        assert_eq!(expires, late.plus_ms(COLLECT_MS_MIN));
    }

    #[test]
    fn a_limited_retention_still_leaves_time_to_collect_the_result() {
        const HOUR: u64 = 3_600_000;
        let wanted = [Retention::Unlimited, Retention::FromEnd(9 * HOUR), Retention::FromCreation(24 * HOUR)];
        for took in [0, HOUR / 2, 24 * HOUR, 100 * HOUR] {
            let end = CREATED.plus_ms(took);
            for wanted in wanted {
                let kept = wanted.at_most(HOUR).expires_at(CREATED, end).unwrap();
                assert!(kept <= end.plus_ms(HOUR), "{wanted:?} after {took} ms");
                assert!(kept >= end.plus_ms(COLLECT_MS_MIN), "{wanted:?} after {took} ms");
            }
            for shorter in [Retention::FromEnd(5_000), Retention::FromCreation(HOUR), Retention::FromCreation(5_000)] {
                assert_eq!(shorter.at_most(HOUR), shorter);
            }
        }
    }

    #[test]
    fn a_family_is_kept_as_long_as_its_ttl_said_before_the_end() {
        let retention = Retention::FromCreation(300_000);
        for age in [0, 200_000, 250_000, 400_000] {
            let now = CREATED.plus_ms(age);
            let promised = retention.promised_until(CREATED, now, now).unwrap();
            let kept = retention.expires_at(CREATED, now.plus_ms(1)).unwrap();
            assert!(kept >= promised, "promised until {promised:?}, kept until {kept:?}");
        }
    }
}
