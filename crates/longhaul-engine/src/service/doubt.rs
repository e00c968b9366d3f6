//! Gives up attempts that this node was given and never heard of: the answer to a claim or a creation was lost on its
//! way, and the store cannot say so. Nobody runs them, and no other node may take them while this one lives.

use std::sync::Arc;
use std::time::Duration;

use longhaul_store::{Orphan, StoreError};
use longhaul_task::Event;
use longhaul_task::transition::Lose;

use crate::shell::Shared;

/// How many attempts are looked at in one go.
const BATCH: usize = 1_000;

/// The pause before looking whether every commit has come back, and after the store could not be asked.
const PAUSE: Duration = Duration::from_millis(100);

pub(crate) async fn run(shared: Arc<Shared>) {
    loop {
        shared.doubt.notified().await;
        while let Err(error) = pass(&shared).await {
            tracing::warn!(%error, "could not look for attempts in doubt; trying again");
            tokio::time::sleep(PAUSE).await;
        }
    }
}

async fn pass(shared: &Arc<Shared>) -> Result<(), StoreError> {
    let mut after = None;
    loop {
        let held = shared.store.held(shared.node, after.as_ref(), BATCH).await?;
        let Some(last) = held.last() else { return Ok(()) };
        after = Some(last.key.clone());
        // What was committed and is not known may still be on its way.
        let commit = shared.core.lock().last_commit();
        while !shared.core.lock().knows_up_to(commit) {
            tokio::time::sleep(PAUSE).await;
        }
        for attempt in held.iter().filter(|attempt| !shared.knows(&attempt.key, attempt.fence)) {
            lose(shared, attempt).await?;
        }
    }
}

async fn lose(shared: &Arc<Shared>, attempt: &Orphan) -> Result<(), StoreError> {
    let event = Event::Lose(Lose { node: attempt.node, fence: attempt.fence });
    match shared.apply(&attempt.key, event).await {
        Ok(_) => {
            tracing::warn!(task = %attempt.key.id, "gave up an attempt that this node never heard of");
            Ok(())
        }
        // It has ended since.
        Err(StoreError::NotFound | StoreError::Refused(_)) => Ok(()),
        Err(error) => Err(error),
    }
}
