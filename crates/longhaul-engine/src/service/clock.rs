//! Shortens waits when the clock has gone back: none takes longer than its own length by the clock as it is now.

use std::sync::Arc;

use longhaul_store::StoreError;
use longhaul_task::transition::Shorten;
use longhaul_task::{Event, Timestamp};

use crate::core::ClockWatch;
use crate::shell::EngineInner;

/// How many tasks are fetched, and written together, at once.
const BATCH: usize = 256;

/// Takes a reading of the clock, and shortens waits if it is earlier than the last one.
pub(super) async fn observe(
    engine: &Arc<EngineInner>,
    watch: &mut ClockWatch,
    now: Timestamp,
) -> Result<(), StoreError> {
    if let Some(back_ms) = watch.went_back_ms(now) {
        let tasks = shorten_waits(engine).await?;
        tracing::warn!(back_ms, tasks, "the clock was set back; waits that began after its time were shortened");
    }
    watch.accept(now);
    Ok(())
}

/// At a start: the clock may have been ahead when the last process died.
pub(super) async fn recover(engine: &Arc<EngineInner>) -> Result<(), StoreError> {
    let tasks = shorten_waits(engine).await?;
    if tasks > 0 {
        tracing::warn!(tasks, "the clock shows an earlier time than the store; waits that began later were shortened");
    }
    Ok(())
}

/// Returns how many tasks it has changed.
async fn shorten_waits(engine: &Arc<EngineInner>) -> Result<usize, StoreError> {
    let mut total = 0;
    loop {
        let keys = engine.store.ahead_of_clock(BATCH).await?;
        let events = keys.iter().map(|key| engine.apply(key, Event::Shorten(Shorten)));
        let mut shortened = 0;
        for applied in futures_util::future::join_all(events).await {
            match applied {
                Ok(_) => shortened += 1,
                // It has moved on, or cannot be read.
                Err(StoreError::NotFound | StoreError::Refused(_) | StoreError::Damaged(_)) => {}
                Err(error) => return Err(error),
            }
        }
        total += shortened;
        if shortened == 0 {
            return Ok(total);
        }
    }
}
