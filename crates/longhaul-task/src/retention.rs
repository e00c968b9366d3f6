//! How long a settled family is kept.

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// A result stays readable for at least this long after the end (or as long as its whole retention, if that is
/// shorter), however long the work took: a retention counted from creation may have run out by then, and nobody
/// would ever see what was done.
pub const COLLECT_MS_MIN: u64 = 10 * 60 * 1_000;

/// How long a family is kept. Only settled families expire; `ttl`, `ttlMs` and `keepAlive` are views of this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Retention {
    /// Until so many milliseconds after the root was created.
    FromCreation(u64),
    /// Until so many milliseconds after the root ended.
    FromEnd(u64),
    /// Until somebody deletes it.
    Unlimited,
}

impl Retention {
    /// When a family may be deleted whose root was created and settled then.
    pub fn expires_at(self, created_at: Timestamp, settled_at: Timestamp) -> Option<Timestamp> {
        match self {
            Self::FromCreation(ms) => {
                let to_collect = settled_at.plus_ms(ms.min(COLLECT_MS_MIN));
                Some(created_at.plus_ms(ms).max(to_collect))
            }
            Self::FromEnd(ms) => Some(settled_at.plus_ms(ms)),
            Self::Unlimited => None,
        }
    }

    /// The same, but for no longer than so many milliseconds. What is counted from creation stays so: the time that a
    /// requestor is shown may not shrink, as one from an end that has not come yet would.
    pub fn at_most(self, ms_max: u64) -> Self {
        match self {
            Self::FromCreation(ms) => Self::FromCreation(ms.min(ms_max)),
            Self::FromEnd(ms) => Self::FromEnd(ms.min(ms_max)),
            Self::Unlimited => Self::FromCreation(ms_max),
        }
    }

    /// Until when a requestor may count on a family made at `created_at` that has not settled by `now`. It moves on
    /// while the work does and never comes back, because the end can only come later than `now`. Counted from the end,
    /// it is the latest that it can be: nobody knows the end before it has come, only that it comes by `life`.
    pub fn promised_until(self, created_at: Timestamp, now: Timestamp, life: Timestamp) -> Option<Timestamp> {
        match self {
            Self::FromEnd(_) => self.expires_at(created_at, life),
            Self::FromCreation(_) | Self::Unlimited => self.expires_at(created_at, now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CREATED: Timestamp = Timestamp::from_ms(1_000_000);

    #[test]
    fn a_result_can_be_collected_even_when_the_work_outlasted_its_retention() {
        let late = CREATED.plus_ms(10_000_000);
        let expires = Retention::FromCreation(3_000_000).expires_at(CREATED, late).unwrap();
        assert_eq!(expires, late.plus_ms(COLLECT_MS_MIN));
        let short = Retention::FromCreation(2_000).expires_at(CREATED, late).unwrap();
        assert_eq!(short, late.plus_ms(2_000));
    }

    #[test]
    fn at_most_an_hour_is_an_hour_and_long_work_can_still_be_collected() {
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
    fn what_is_promised_while_working_is_kept_at_the_end() {
        let retention = Retention::FromCreation(300_000);
        for age in [0, 200_000, 250_000, 400_000] {
            let now = CREATED.plus_ms(age);
            let promised = retention.promised_until(CREATED, now, now).unwrap();
            let kept = retention.expires_at(CREATED, now.plus_ms(1)).unwrap();
            assert!(kept >= promised, "promised until {promised:?}, kept until {kept:?}");
        }
    }
}
