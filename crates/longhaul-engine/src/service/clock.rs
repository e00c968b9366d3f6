//! Shortens waits when the clock has gone back: none takes longer than its own length by the clock as it is now.

use std::sync::Arc;

use longhaul_store::StoreError;
use longhaul_task::Event;
use longhaul_task::transition::Shorten;

use crate::shell::EngineInner;

/// How many tasks are fetched, and written together, at once.
const BATCH: usize = 256;

/// Shortens every wait that began later than the clock shows now. At a start there may be some because the clock was ahead when the
/// last process died.
pub(super) async fn shorten_waits(engine: &Arc<EngineInner>) -> Result<(), StoreError> {
    let mut tasks = 0;
    loop {
        let keys = engine.store.ahead_of_clock(BATCH).await?;
        let events = keys.iter().map(|key| engine.apply(key, Event::Shorten(Shorten)));
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
