//! How long a settled family is kept.

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// A result stays readable for at least this long after the end (or as long as its whole retention, if that is
/// shorter), however long the work took: a retention counted from creation may have run out by then, and nobody
/// would ever see what was done.
pub const COLLECT_MS_MIN: u64 = 60_000;

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

    /// The same, but for no longer than so many milliseconds after the end. A longer time from creation becomes this time
    /// from the end: cut short where it is counted, it could be over when the work is.
    pub fn at_most_after_end(self, ms_max: u64) -> Self {
        match self {
            Self::FromCreation(ms) if ms <= ms_max => self,
            Self::FromEnd(ms) => Self::FromEnd(ms.min(ms_max)),
            Self::FromCreation(_) | Self::Unlimited => Self::FromEnd(ms_max),
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
        let expires = Retention::FromCreation(300_000).expires_at(CREATED, late).unwrap();
        assert_eq!(expires, late.plus_ms(COLLECT_MS_MIN));
        let short = Retention::FromCreation(2_000).expires_at(CREATED, late).unwrap();
        assert_eq!(short, late.plus_ms(2_000));
    }

    #[test]
    fn nothing_is_kept_for_longer_after_its_end_than_it_may_be_and_what_is_to_be_kept_for_less_is() {
        const HOUR: u64 = 3_600_000;
        let wanted = [Retention::Unlimited, Retention::FromEnd(9 * HOUR), Retention::FromCreation(24 * HOUR)];
        for took in [0, HOUR / 2, 24 * HOUR, 100 * HOUR] {
            let end = CREATED.plus_ms(took);
            for wanted in wanted {
                let kept = wanted.at_most_after_end(HOUR).expires_at(CREATED, end).unwrap();
                assert_eq!(kept, end.plus_ms(HOUR), "{wanted:?} after {took} ms");
            }
            for shorter in [Retention::FromEnd(5_000), Retention::FromCreation(HOUR), Retention::FromCreation(5_000)] {
                let kept = shorter.at_most_after_end(HOUR);
                assert_eq!(kept, shorter);
                assert!(kept.expires_at(CREATED, end).unwrap() <= end.plus_ms(HOUR), "{shorter:?} after {took} ms");
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
