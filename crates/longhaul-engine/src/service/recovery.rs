//! What a dead process left behind is dealt with before anything new begins.

use std::sync::Arc;

use longhaul_store::{Orphan, StoreError};
use longhaul_task::transition::Lose;
use longhaul_task::{Event, Outcome, Phase};

use crate::audit;
use crate::shell::Shared;

/// How many orphans are fetched at once.
const BATCH: usize = 1_000;

/// How many of them are written at once, so that they share commits.
const AT_ONCE: usize = 256;

pub(crate) async fn run(shared: &Arc<Shared>) -> Result<(), StoreError> {
    shared.store.join(shared.node, None, &shared.served()).await?;
    let (mut failed, mut queued) = (0_u64, 0_u64);
    loop {
        let orphans = shared.store.orphans(BATCH).await?;
        if orphans.is_empty() {
            break;
        }
        for group in orphans.chunks(AT_ONCE) {
            let lost = futures_util::future::join_all(group.iter().map(|orphan| lose(shared, orphan))).await;
            for lost in lost {
                match lost? {
                    Some(true) => failed += 1,
                    Some(false) => queued += 1,
                    None => {}
                }
            }
        }
    }
    if failed + queued > 0 {
        tracing::info!(failed, queued, "dealt with tasks that a dead process left behind");
    }
    // Counted after the orphans are back in the queue, so that it holds from here on.
    let counts = shared.store.census().await?;
    let mut core = shared.core.lock();
    for count in counts {
        let size = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        core.count(count.owner, &count.tool, size(count.tasks), size(count.queued));
    }
    Ok(())
}

/// Says whether the task ended with it.
async fn lose(shared: &Shared, orphan: &Orphan) -> Result<Option<bool>, StoreError> {
    match shared.store.apply(&orphan.key, Event::Lose(Lose { node: orphan.node, fence: orphan.fence })).await {
        Ok(applied) => {
            audit::applied(&applied);
            Ok(Some(matches!(applied.task.phase, Phase::Settled { outcome: Outcome::Refusal(_), .. })))
        }
        // Its family ended with another member, or another node was quicker.
        Err(StoreError::NotFound | StoreError::Refused(_)) => Ok(None),
        Err(error) => Err(error),
    }
}
