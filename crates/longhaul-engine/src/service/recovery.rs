//! What a dead process left behind is dealt with before anything new begins.

use std::collections::BTreeSet;
use std::sync::Arc;

use longhaul_store::StoreError;

use crate::shell::EngineInner;

/// How many orphans are fetched at once.
const BATCH: usize = 1_000;

/// How many of them are written at once, so that they share commits.
const AT_ONCE: usize = 256;

pub(crate) async fn run(engine: &Arc<EngineInner>) -> Result<(), StoreError> {
    engine.store.join(engine.node, None, &engine.tools.served()).await?;
    let (mut failed, mut queued) = (0_u64, 0_u64);
    // Damaged tasks stay orphans, so every read returns them again.
    let mut damaged = BTreeSet::new();
    loop {
        let mut orphans = engine.store.orphans(BATCH + damaged.len()).await?;
        orphans.retain(|orphan| !damaged.contains(&orphan.key));
        if orphans.is_empty() {
            break;
        }
        for group in orphans.chunks(AT_ONCE) {
            let lost = futures_util::future::join_all(group.iter().map(|orphan| engine.lose(orphan))).await;
            for (orphan, lost) in group.iter().zip(lost) {
                match lost {
                    Ok(Some(task)) if task.is_settled() => failed += 1,
                    Ok(Some(_)) => queued += 1,
                    Ok(None) => {}
                    Err(error @ StoreError::Damaged(_)) => {
                        let key = orphan.key.clone();
                        tracing::error!(task = %key.id, owner = %key.owner, %error, "a task that was running is left as it is");
                        damaged.insert(key);
                    }
                    Err(error) => return Err(error),
                }
            }
        }
    }
    if failed + queued > 0 {
        tracing::info!(failed, queued, "dealt with tasks that a dead process left behind");
    }
    super::clock::shorten_waits(engine).await?;
    // Counted after the orphans are back in the queue, so that it holds from here on.
    let counts = engine.store.count_open_tasks().await?;
    engine.core.lock().recount(counts);
    Ok(())
}
