//! Repairs what a commit in doubt leaves behind: the store could not say whether it was written, and what followed from it
//! did not reach this node. Then
//!
//! - this node may hold attempts that it never heard of: no handler runs them, and no other node may take them;
//! - attempts of this node may have lost their task, and their handlers were not told;
//! - its counts of open and queued tasks may be wrong.

use std::sync::Arc;
use std::time::Duration;

use longhaul_store::StoreError;
use longhaul_task::Effect;

use crate::core::Input;
use crate::shell::EngineInner;

/// How many attempts are looked at in one go.
const BATCH: usize = 1_000;

/// The pause before looking whether every commit has come back, and after the store could not be asked.
const PAUSE: Duration = Duration::from_millis(100);

/// The longest pause before the counts are compared again. Counting costs the store more than a look.
const RECOUNT_PAUSE_MAX: Duration = Duration::from_secs(5);

pub(crate) async fn run(engine: Arc<EngineInner>) {
    loop {
        engine.doubt.notified().await;
        while let Err(error) = pass(&engine).await {
            tracing::debug!(%error, "could not look for attempts in doubt; trying again");
            tokio::time::sleep(PAUSE).await;
        }
    }
}

async fn pass(engine: &Arc<EngineInner>) -> Result<(), StoreError> {
    give_up_unknown(engine).await?;
    stop_outdated(engine).await
}

async fn give_up_unknown(engine: &Arc<EngineInner>) -> Result<(), StoreError> {
    let mut after = None;
    loop {
        let held = engine.store.held(engine.node, after.as_ref(), BATCH).await?;
        let Some(last) = held.last() else { return Ok(()) };
        after = Some(last.key.clone());
        // What was committed and is not known may still be on its way.
        all_answered(engine).await;
        for attempt in held.iter().filter(|attempt| !engine.is_running(&attempt.key, attempt.fence)) {
            if engine.lose(attempt).await?.is_some() {
                tracing::warn!(task = %attempt.key.id, "gave up an attempt that this node never heard of");
            }
        }
    }
}

/// Waits until every commit that is under way has come back.
async fn all_answered(engine: &EngineInner) {
    let commit = engine.core.lock().last_commit();
    while !engine.core.lock().knows_up_to(commit) {
        tokio::time::sleep(PAUSE).await;
    }
}

async fn stop_outdated(engine: &Arc<EngineInner>) -> Result<(), StoreError> {
    // The response to a claim under way may start an attempt that has already lost its task.
    all_answered(engine).await;
    for (key, fence) in engine.held() {
        let is_outdated = match engine.store.read(&key).await {
            Ok(found) => found.task.fence != fence,
            Err(StoreError::NotFound) => true,
            Err(error) => return Err(error),
        };
        if is_outdated {
            engine.step(Input::Applied { effects: vec![Effect::Stop { key, node: engine.node, fence }] });
        }
    }
    Ok(())
}

/// Takes the store's counts over at a moment when no commit of this node is under way.
pub(crate) async fn recount(engine: Arc<EngineInner>) {
    loop {
        engine.recount.notified().await;
        let mut pause = PAUSE;
        while !try_recount(&engine).await {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(RECOUNT_PAUSE_MAX);
        }
    }
}

async fn try_recount(engine: &Arc<EngineInner>) -> bool {
    let Some(last) = engine.core.lock().last_commit_if_all_ended() else { return false };
    let Ok(counts) = engine.store.count_open_tasks().await else { return false };
    {
        let mut core = engine.core.lock();
        if core.last_commit_if_all_ended() != Some(last) {
            return false;
        }
        core.recount(counts);
    }
    engine.queue.notify_one();
    true
}
