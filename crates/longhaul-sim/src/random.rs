//! The only source of randomness in a history.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

/// All random decisions of a history come from here, so that its seed determines it completely.
#[derive(Debug)]
pub(crate) struct SeededRandom(Xoshiro256PlusPlus);

impl SeededRandom {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        if end <= 1 { 0 } else { self.0.random_range(0..end) }
    }

    /// A number from `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        self.0.random_range(low..=high)
    }

    /// True in `times` of 1000 cases.
    pub(crate) fn permille(&mut self, times: u32) -> bool {
        self.0.random_range(0..1_000) < times
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.below(from.len()))
    }

    pub(crate) fn bits(&mut self) -> [u8; 16] {
        self.0.random()
    }

    /// A separate source: drawing from it does not change the numbers that this one gives.
    pub(crate) fn split(&mut self) -> Self {
        Self::new(self.0.random())
    }

    /// One of the choices, by weight; `None` if the sum of the weights is 0.
    pub(crate) fn weighted<T: Copy>(&mut self, choices: &[(u32, T)]) -> Option<T> {
        let sum: u32 = choices.iter().map(|(weight, _)| weight).sum();
        if sum == 0 {
            return None;
        }
        let mut at = self.0.random_range(0..sum);
        for (weight, choice) in choices {
            if at < *weight {
                return Some(*choice);
            }
            at -= weight;
        }
        None
    }
}
