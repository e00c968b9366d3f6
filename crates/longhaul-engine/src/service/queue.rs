//! Wakes the core when a queued task that had to wait may be claimed.

use std::sync::Arc;
use std::time::Duration;

use longhaul_store::{StoreError, Watch};

use super::clock;
use crate::core::{Input, QueueDecision, decide_queue};
use crate::shell::EngineInner;

/// The pause after the store could not be asked.
const RETRY_MS: u64 = 1_000;

pub(crate) async fn run(engine: Arc<EngineInner>) {
    // The core knows the tasks that this process queues. On a shared store other nodes queue tasks, too.
    let mut queue_watch = engine.store.is_shared().then(|| engine.store.watch_queue());
    loop {
        let (pause_ms, sleep_ms) = match check_queue(&engine).await {
            Ok(decision) => (decision.pause_ms, decision.sleep_ms),
            Err(error) => {
                tracing::debug!(%error, "could not look at the queue");
                (RETRY_MS, 0)
            }
        };
        tokio::time::sleep(Duration::from_millis(pause_ms)).await;
        tokio::select! {
            biased;
            () = engine.queue.notified() => {}
            () = queue_change(&mut queue_watch) => engine.due.check_now(),
            () = tokio::time::sleep(Duration::from_millis(sleep_ms)) => {}
        }
    }
}

async fn queue_change(queue_watch: &mut Option<Watch>) {
    match queue_watch {
        Some(watch) => watch.changed().await,
        None => std::future::pending().await,
    }
}

/// Looks whether the clock has gone back, offers work to every tool if some may be claimed now, and says when to look again.
async fn check_queue(engine: &Arc<EngineInner>) -> Result<QueueDecision, StoreError> {
    let served = engine.tools.served();
    clock::shorten_waits(engine).await?;
    let decision = decide_queue(engine.store.now().await?, engine.store.next_queued(&served).await?);
    if decision.offer {
        for tool in served {
            engine.step(Input::MaybeQueued { tool });
        }
    }
    Ok(decision)
}
