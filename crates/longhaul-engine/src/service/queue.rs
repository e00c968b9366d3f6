//! Wakes the core when a queued task that had to wait may be claimed.

use std::sync::Arc;
use std::time::Duration;

use longhaul_store::{StoreError, Watch};

use crate::core::{Input, QueueDecision, decide_queue};
use crate::shell::EngineInner;

/// The pause after the store could not be asked.
const RETRY_MS: u64 = 1_000;

pub(crate) async fn run(engine: Arc<EngineInner>) {
    // What this process queues, it knows; what others do, on a shared store, it has to be told.
    let mut others = engine.store.is_shared().then(|| engine.store.watch_queue());
    loop {
        let (pause_ms, sleep_ms) = match look(&engine).await {
            Ok(look) => (look.pause_ms, look.sleep_ms),
            Err(error) => {
                tracing::warn!(%error, "could not look at the queue");
                (RETRY_MS, 0)
            }
        };
        tokio::time::sleep(Duration::from_millis(pause_ms)).await;
        tokio::select! {
            biased;
            () = engine.queue.notified() => {}
            () = told(&mut others) => engine.due.look(),
            () = tokio::time::sleep(Duration::from_millis(sleep_ms)) => {}
        }
    }
}

async fn told(others: &mut Option<Watch>) {
    match others {
        Some(watch) => watch.changed().await,
        None => std::future::pending().await,
    }
}

/// Offers work to every tool if some may be claimed now, and says when to look again.
async fn look(engine: &Arc<EngineInner>) -> Result<QueueDecision, StoreError> {
    let served = engine.served();
    let look = decide_queue(engine.store.now().await?, engine.store.next_queued(&served).await?);
    if look.offer {
        for tool in served {
            engine.step(Input::MaybeQueued { tool });
        }
    }
    Ok(look)
}
