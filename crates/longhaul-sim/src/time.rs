//! Virtual time: the runtime's clock, which advances only while all tasks sleep, and the store's clock, which can
//! also jump.

use longhaul_store::Clock;
use longhaul_task::Timestamp;
use parking_lot::Mutex;
use tokio::time::Instant;

/// The store's time when a history begins.
const START_MS: u64 = 1_700_000_000_000;

/// The store's clock. It continues from one runtime to the next.
#[derive(Debug)]
pub(crate) struct StoreTime(Mutex<ClockState>);

#[derive(Debug)]
struct ClockState {
    /// The store's time at the start of the runtime, plus all jumps since.
    base_ms: u64,
    started: Option<Instant>,
    /// How far the clock is ahead of the right time: the jumps forward since it was last corrected.
    ahead_ms: u64,
    /// All corrections together.
    corrected_ms: u64,
}

impl StoreTime {
    pub(crate) fn start() -> Self {
        Self(Mutex::new(ClockState { base_ms: START_MS, started: None, ahead_ms: 0, corrected_ms: 0 }))
    }

    /// Called when a runtime starts.
    pub(crate) fn resume(&self) {
        self.0.lock().started = Some(Instant::now());
    }

    /// Called when a runtime ends.
    pub(crate) fn suspend(&self) {
        let now = self.now();
        let mut state = self.0.lock();
        (state.base_ms, state.started) = (now.as_ms(), None);
    }

    pub(crate) fn jump_forward(&self, ms: u64) {
        let mut state = self.0.lock();
        state.base_ms += ms;
        state.ahead_ms += ms;
    }

    /// Sets a clock that is ahead back to the right time. Returns whether it was ahead.
    pub(crate) fn correct(&self) -> bool {
        let mut state = self.0.lock();
        let ahead_ms = std::mem::take(&mut state.ahead_ms);
        state.base_ms -= ahead_ms;
        state.corrected_ms += ahead_ms;
        ahead_ms > 0
    }

    /// Past everything that was written when the clock was ahead.
    pub(crate) fn jump_past_all(&self, ms: u64) {
        let corrected_ms = self.0.lock().corrected_ms;
        self.jump_forward(corrected_ms + ms);
    }

    pub(crate) fn jump_back(&self, ms: u64) {
        self.0.lock().base_ms -= ms;
    }
}

impl Clock for StoreTime {
    fn now(&self) -> Timestamp {
        let state = self.0.lock();
        let passed = state.started.map_or(0, |started| started.elapsed().as_millis());
        Timestamp::from_ms(state.base_ms + u64::try_from(passed).unwrap_or(0))
    }
}
