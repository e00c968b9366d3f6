//! The end of a process, when there is time for one.

use std::sync::Arc;
use std::time::Duration;

use longhaul_store::HeldAttempt;
use longhaul_task::TaskKey;
use tokio::time::Instant;

use crate::shell::EngineInner;

pub(crate) async fn run(engine: &Arc<EngineInner>) {
    engine.drain();
    engine.stopping.cancel();
    engine.tracker.close();
    // Handlers have known since the drain began: whatever was done meanwhile is part of their time.
    let spent = engine.draining_since.get().map(Instant::elapsed).unwrap_or_default();
    let drain = Duration::from_millis(engine.limits.drain_ms).saturating_sub(spent);
    if tokio::time::timeout(drain, engine.tracker.wait()).await.is_ok() {
        return;
    }
    let held = engine.held();
    tracing::info!(tasks = held.len(), "handlers are still running; giving their tasks up");
    give_up(engine, held).await;
}

/// Gives up attempts that do nothing but wait for an answer, because no client can answer any more.
pub(crate) async fn give_up_waiting_tasks(engine: &Arc<EngineInner>) {
    engine.drain();
    let mut waiting = Vec::new();
    for (key, fence) in engine.held() {
        let is_idle = engine.core.lock().is_idle(&key, fence);
        if is_idle && engine.store.read(&key).await.is_ok_and(|found| found.task.phase.questions().is_some()) {
            waiting.push((key, fence));
        }
    }
    if !waiting.is_empty() {
        tracing::info!(tasks = waiting.len(), "giving up tasks that wait for an answer");
        give_up(engine, waiting).await;
    }
}

/// Ends attempts as a crash would, but at once: failed, or back in the queue for the next process.
async fn give_up(engine: &Arc<EngineInner>, held: Vec<(TaskKey, u64)>) {
    let lose = |(key, fence)| async move {
        let attempt = HeldAttempt { key, node: engine.node, fence };
        if let Err(error) = engine.lose(&attempt).await {
            tracing::warn!(task = %attempt.key.id, %error, "could not give a task up; the next process does");
        }
        engine.drop_attempt(&attempt.key, fence);
    };
    futures_util::future::join_all(held.into_iter().map(lose)).await;
}
