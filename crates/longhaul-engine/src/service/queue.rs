//! Wakes the core when a queued task that had to wait may be claimed.

use std::sync::Arc;
use std::time::Duration;

use longhaul_store::{StoreError, Watch};

use crate::core::{Input, QueueDecision, decide_queue};
use crate::shell::EngineInner;

/// The pause after the store could not be asked.
const RETRY_MS: u64 = 1_000;

pub(crate) async fn run(shared: Arc<EngineInner>) {
    // What this process queues, it knows; what others do, on a shared store, it has to be told.
    let mut others = shared.store.is_shared().then(|| shared.store.watch_queue());
    loop {
        let (pause_ms, sleep_ms) = match look(&shared).await {
            Ok(look) => (look.pause_ms, look.sleep_ms),
            Err(error) => {
                tracing::warn!(%error, "could not look at the queue");
                (RETRY_MS, 0)
            }
        };
        tokio::time::sleep(Duration::from_millis(pause_ms)).await;
        tokio::select! {
            biased;
            () = shared.queue.notified() => {}
            () = told(&mut others) => shared.due.look(),
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
async fn look(shared: &Arc<EngineInner>) -> Result<QueueDecision, StoreError> {
    let served = shared.served();
    let look = decide_queue(shared.store.now().await?, shared.store.next_queued(&served).await?);
    if look.offer {
        for tool in served {
            shared.step(Input::MaybeQueued { tool });
        }
    }
    Ok(look)
}
