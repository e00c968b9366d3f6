//! How often a step is tried again, and how long it waits before each try.

use std::time::Duration;

use crate::RandomSource;

/// How a step that fails is tried again. The wait before the second try is `backoff`; it doubles with each further try.
///
/// ```
/// use std::time::Duration;
///
/// use longhaul_engine::Retry;
///
/// let retry = Retry::times(5).backoff(Duration::from_millis(200));
/// # let _ = retry;
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Retry {
    /// The most tries, including the first.
    pub tries_max: u32,
    /// The wait before the second try.
    pub backoff: Duration,
    /// The longest wait between two tries.
    pub backoff_max: Duration,
    /// The part of each wait that is random, from 0 to 1, so that many tasks do not try again at the same moment.
    pub jitter: f64,
}

impl Retry {
    /// At most `tries_max` tries, including the first. The wait before the second one is a second, no wait is longer than a
    /// minute, and a fifth of each wait is random.
    pub const fn times(tries_max: u32) -> Self {
        Self { tries_max, backoff: Duration::from_secs(1), backoff_max: Duration::from_secs(60), jitter: 0.2 }
    }

    /// Sets the wait before the second try. Raises `backoff_max` if that is shorter.
    pub fn backoff(self, backoff: Duration) -> Self {
        Self { backoff, backoff_max: self.backoff_max.max(backoff), ..self }
    }

    /// Sets the longest wait between two tries.
    pub const fn backoff_max(self, backoff_max: Duration) -> Self {
        Self { backoff_max, ..self }
    }

    /// Sets the part of each wait that is random, from 0 to 1.
    pub const fn jitter(self, jitter: f64) -> Self {
        Self { jitter, ..self }
    }

    /// The wait after this many failures; `None` if there are no tries left.
    pub(crate) fn wait_after(&self, failures: u32, random: &dyn RandomSource) -> Option<Duration> {
        if failures >= self.tries_max {
            return None;
        }
        let doublings = failures.saturating_sub(1).min(31);
        let wait = self.backoff.saturating_mul(1 << doublings).min(self.backoff_max);
        Some(wait.mul_f64(1.0 - self.jitter.clamp(0.0, 1.0) * random_fraction(random)))
    }
}

/// A random number from 0 to 1.
fn random_fraction(random: &dyn RandomSource) -> f64 {
    let bits = random.bits();
    f64::from(u32::from_be_bytes([bits[0], bits[1], bits[2], bits[3]])) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SystemRandom;

    #[test]
    fn the_wait_doubles_up_to_its_limit_and_ends_after_the_last_try() {
        let retry = Retry::times(6).backoff(Duration::from_secs(1)).backoff_max(Duration::from_secs(5)).jitter(0.0);
        let waits = (1..=6).map(|failures| retry.wait_after(failures, &SystemRandom).map(|wait| wait.as_secs()));
        assert!(waits.eq([Some(1), Some(2), Some(4), Some(5), Some(5), None]));
    }

    #[test]
    fn jitter_only_shortens_a_wait() {
        let retry = Retry::times(2).backoff(Duration::from_secs(10)).jitter(0.5);
        for _ in 0..100 {
            let wait = retry.wait_after(1, &SystemRandom).unwrap();
            assert!((5_000..=10_000).contains(&wait.as_millis()), "{wait:?}");
        }
    }
}
