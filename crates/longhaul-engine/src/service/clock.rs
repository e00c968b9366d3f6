//! Shortens waits when the clock has gone back: none takes longer than its own length by the clock as it is now.

use std::sync::Arc;

use longhaul_store::StoreError;
use longhaul_task::transition::Shorten;
use longhaul_task::{Event, Timestamp, Wait};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::shell::EngineInner;

/// How many tasks are fetched, and written together, at once.
const BATCH: usize = 256;

/// Notices by how much the clock was set back while this process runs. Its own measurement of time tells what the clock should show.
#[derive(Debug, Default)]
pub(crate) struct ClockJumps {
    state: Mutex<ClockState>,
}

#[derive(Debug, Default)]
struct ClockState {
    last_reading: Option<(Instant, Timestamp)>,
    last_jump: Option<ClockJump>,
}

#[derive(Debug, Clone, Copy)]
struct ClockJump {
    /// What the clock would show if it had not been set.
    expected: Timestamp,
    back_ms: u64,
}

impl ClockJumps {
    fn note(&self, now: Timestamp) {
        let mut state = self.state.lock();
        let passed_ms = |since: Instant| u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
        if let Some((at, before)) = state.last_reading.replace((Instant::now(), now))
            && now < before
        {
            let expected = before.plus_ms(passed_ms(at));
            state.last_jump = Some(ClockJump { expected, back_ms: expected.ms_since(now) });
        }
    }

    /// What is left of a wait. If the clock was set back during the wait, by a jump that this process has measured, the wait goes on
    /// as if it had not been. Otherwise it begins again.
    pub(crate) fn shorten(&self, wait: Wait, now: Timestamp) -> Wait {
        match self.state.lock().last_jump {
            Some(jump) if now < wait.since && wait.since <= jump.expected => {
                let moved = |at: Timestamp| at.minus_ms(jump.back_ms);
                Wait { since: moved(wait.since), until: moved(wait.until) }.by_clock(now)
            }
            _ => wait.by_clock(now),
        }
    }
}

/// Shortens every wait that began later than the clock shows now. At a start there may be some because the clock was ahead when the
/// last process died.
pub(super) async fn shorten_waits(engine: &Arc<EngineInner>) -> Result<(), StoreError> {
    engine.clock_jumps.note(engine.store.now().await?);
    let mut tasks = 0;
    loop {
        let keys = engine.store.ahead_of_clock(BATCH).await?;
        let events = keys.iter().map(|key| engine.apply(key, Event::Shorten(Shorten::default())));
        let before = tasks;
        for applied in futures_util::future::join_all(events).await {
            match applied {
                Ok(_) => tasks += 1,
                // It has moved on, or cannot be read.
                Err(StoreError::NotFound | StoreError::Refused(_) | StoreError::Damaged(_)) => {}
                Err(error) => return Err(error),
            }
        }
        if tasks == before {
            break;
        }
    }
    if tasks > 0 {
        tracing::warn!(tasks, "tasks began to wait later than the clock shows; their waits begin again");
    }
    Ok(())
}
