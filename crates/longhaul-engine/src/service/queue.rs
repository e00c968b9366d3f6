//! Wakes the core when a queued task that had to wait may be claimed.

use std::sync::Arc;
use std::time::Duration;

use crate::core::Input;
use crate::engine::Shared;

/// The longest sleep while something is queued: another node may have left work behind.
const SLEEP_MS_MAX: u64 = 5_000;

pub(crate) async fn run(shared: Arc<Shared>) {
    loop {
        let wait_ms = look(&shared).await;
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(wait_ms)) => {}
            () = shared.queue.notified() => {}
        }
    }
}

/// Offers work to every tool if some may be claimed now, and says when to look again.
async fn look(shared: &Arc<Shared>) -> u64 {
    let (Ok(now), Ok(next)) = (shared.store.now().await, shared.store.next_queued().await) else {
        return SLEEP_MS_MAX;
    };
    match next {
        Some(at) if at <= now => {
            for tool in shared.served() {
                shared.step(Input::MaybeQueued { tool });
            }
            SLEEP_MS_MAX
        }
        Some(at) => at.ms_since(now).min(SLEEP_MS_MAX),
        None => SLEEP_MS_MAX,
    }
}
