//! What a dead process left behind is dealt with before anything new begins.

use std::sync::Arc;

use longhaul_store::StoreError;

use crate::shell::EngineInner;

/// How many orphans are fetched at once.
const BATCH: usize = 1_000;

/// How many of them are written at once, so that they share commits.
const AT_ONCE: usize = 256;

pub(crate) async fn run(shared: &Arc<EngineInner>) -> Result<(), StoreError> {
    shared.store.join(shared.node, None, &shared.served()).await?;
    let (mut failed, mut queued) = (0_u64, 0_u64);
    loop {
        let orphans = shared.store.orphans(BATCH).await?;
        if orphans.is_empty() {
            break;
        }
        for group in orphans.chunks(AT_ONCE) {
            let lost = futures_util::future::join_all(group.iter().map(|orphan| shared.lose(orphan))).await;
            for lost in lost {
                match lost? {
                    Some(task) if task.is_settled() => failed += 1,
                    Some(_) => queued += 1,
                    None => {}
                }
            }
        }
    }
    if failed + queued > 0 {
        tracing::info!(failed, queued, "dealt with tasks that a dead process left behind");
    }
    // Counted after the orphans are back in the queue, so that it holds from here on.
    let counts = shared.store.count_open_tasks().await?;
    shared.core.lock().recount(counts);
    Ok(())
}
