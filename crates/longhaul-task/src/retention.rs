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

    /// The milliseconds from creation that a requestor may count on, as of `now`, for a family that has not settled
    /// by then. It grows while the work goes on and never shrinks, because the end can only come later than `now`.
    pub fn promised_ms(self, created_at: Timestamp, now: Timestamp, life_ms_max: u64) -> Option<u64> {
        match self {
            Self::FromEnd(ms) => Some(life_ms_max.saturating_add(ms)),
            _ => self.expires_at(created_at, now.max(created_at)).map(|at| at.ms_since(created_at)),
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
    fn what_is_promised_while_working_is_kept_at_the_end() {
        let retention = Retention::FromCreation(300_000);
        for age in [0, 200_000, 250_000, 400_000] {
            let now = CREATED.plus_ms(age);
            let promised = retention.promised_ms(CREATED, now, 0).unwrap();
            let kept = retention.expires_at(CREATED, now.plus_ms(1)).unwrap().ms_since(CREATED);
            assert!(kept >= promised, "promised {promised}, kept {kept}");
        }
    }
}
