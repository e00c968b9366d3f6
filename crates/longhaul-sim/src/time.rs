//! Virtual time: the machine's steady clock, and the store's, which may stand still or jump back.

use longhaul_task::Timestamp;

/// When every history begins.
const START: u64 = 1_700_000_000_000;

/// Two clocks that move only when they are moved.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Time {
    steady_ms: u64,
    wall_ms: u64,
}

impl Time {
    pub(crate) fn start() -> Self {
        Self { steady_ms: 0, wall_ms: START }
    }

    /// What sleeping goes by.
    pub(crate) fn steady(&self) -> u64 {
        self.steady_ms
    }

    /// What the store says.
    pub(crate) fn wall(&self) -> Timestamp {
        Timestamp::from_ms(self.wall_ms)
    }

    pub(crate) fn pass(&mut self, ms: u64) {
        self.steady_ms += ms;
        self.wall_ms += ms;
    }

    /// Time passes and the store's clock does not show it.
    pub(crate) fn pass_unseen(&mut self, ms: u64) {
        self.steady_ms += ms;
    }

    /// Somebody corrects the store's clock.
    pub(crate) fn set_back(&mut self, ms: u64) {
        self.wall_ms -= ms;
    }
}
