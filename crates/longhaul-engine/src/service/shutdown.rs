//! The end of a process, when there is time for one.

use std::sync::Arc;
use std::time::Duration;

use longhaul_task::Event;
use longhaul_task::transition::Lose;

use crate::audit;
use crate::shell::Shared;

pub(crate) async fn run(shared: &Arc<Shared>) {
    shared.drain();
    shared.stopping.cancel();
    shared.tracker.close();
    let drain = Duration::from_millis(shared.limits.drain_ms);
    if tokio::time::timeout(drain, shared.tracker.wait()).await.is_ok() {
        return;
    }
    // What is left ends as it would after a crash, but at once: failed, or back in the queue for the next process.
    let held = shared.held();
    tracing::info!(tasks = held.len(), "handlers are still running; giving their tasks up");
    let lose = |(key, fence)| async move {
        match shared.store.apply(&key, Event::Lose(Lose { node: shared.node, fence })).await {
            Ok(applied) => audit::applied(&applied),
            Err(error) => tracing::debug!(task = %key.id, %error, "a task ended by itself during the shutdown"),
        }
        shared.drop_attempt(&key, fence);
    };
    futures_util::future::join_all(held.into_iter().map(lose)).await;
}
