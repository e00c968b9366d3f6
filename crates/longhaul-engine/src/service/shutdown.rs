//! The end of a process, when there is time for one.

use std::sync::Arc;
use std::time::Duration;

use longhaul_store::HeldAttempt;
use longhaul_task::TaskKey;
use tokio::time::Instant;

use crate::shell::EngineInner;

/// Returns the number of tasks whose end, or whose last steps, could not be stored.
pub(crate) async fn run(engine: &Arc<EngineInner>) -> usize {
    engine.drain();
    engine.stopping.cancel();
    engine.tracker.close();
    // Handlers have known since the drain began: whatever was done meanwhile is part of their time.
    let spent = engine.draining_since.get().map(Instant::elapsed).unwrap_or_default();
    let drain = Duration::from_millis(engine.limits.drain_ms).saturating_sub(spent);
    let all_ended = tokio::select! {
        biased;
        () = engine.tracker.wait() => true,
        // Nothing that a handler still does can be stored.
        _ = engine.store.stopped() => false,
        () = tokio::time::sleep(drain) => false,
    };
    if all_ended {
        return 0;
    }
    let (ended, lost_ends) = engine.write_remaining_ends().await;
    let lost_steps = engine.write_last_entries().await;
    let mut held = engine.held();
    held.retain(|(key, _)| !ended.contains(key));
    if !held.is_empty() {
        tracing::info!(tasks = held.len(), "handlers are still running; giving their tasks up");
        give_up(engine, held).await;
    }
    lost_ends + lost_steps
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

/// Ends attempts at once: failed, or back in the queue for the next process.
async fn give_up(engine: &Arc<EngineInner>, held: Vec<(TaskKey, u64)>) {
    let lose = |(key, fence)| async move {
        let attempt = HeldAttempt { key, node: engine.node, fence };
        let given_up = engine.give_back(&attempt).await;
        engine.drop_attempt(&attempt.key, fence);
        given_up.err()
    };
    let errors = futures_util::future::join_all(held.into_iter().map(lose)).await;
    if let Some(error) = errors.iter().flatten().next() {
        let tasks = errors.iter().flatten().count();
        tracing::warn!(tasks, %error, "could not give tasks up; the next process does");
    }
}
