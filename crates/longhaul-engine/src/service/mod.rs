//! What runs beside the requests: recovery at the start, timers while it goes on, the end.

pub(crate) mod due;
mod gone;
mod queue;
pub(crate) mod recovery;
pub(crate) mod shutdown;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use longhaul_task::Timestamp;
use tokio::sync::Notify;

use crate::engine::Shared;

/// Starts everything that waits for time to pass.
pub(crate) fn start(shared: &Arc<Shared>) {
    let services: [fn(Arc<Shared>) -> futures_util::future::BoxFuture<'static, ()>; 3] = [
        |shared| Box::pin(due::run(shared)),
        |shared| Box::pin(queue::run(shared)),
        |shared| Box::pin(gone::run(shared)),
    ];
    for service in services {
        let shared = Arc::clone(shared);
        tokio::spawn(async move {
            let stopping = shared.stopping.clone();
            stopping.run_until_cancelled(service(shared)).await;
        });
    }
}

/// An alarm clock that can only be set earlier. Most changes of a task do not move the earliest due moment, so the
/// sleeper is left alone unless one does.
#[derive(Debug)]
pub(crate) struct Alarm {
    at_ms: AtomicU64,
    earlier: Notify,
}

impl Default for Alarm {
    fn default() -> Self {
        Self { at_ms: AtomicU64::new(u64::MAX), earlier: Notify::new() }
    }
}

impl Alarm {
    /// The sleeper wakes at this moment or before.
    pub(crate) fn at_latest(&self, at: Option<Timestamp>) {
        if let Some(at) = at
            && self.at_ms.fetch_min(at.as_ms(), Ordering::SeqCst) > at.as_ms()
        {
            self.earlier.notify_one();
        }
    }

    /// The sleeper is about to look: whatever is set from now on counts.
    pub(crate) fn reset(&self) {
        self.at_ms.store(u64::MAX, Ordering::SeqCst);
    }

    /// The moment that is set.
    pub(crate) fn at(&self) -> Option<Timestamp> {
        let at_ms = self.at_ms.load(Ordering::SeqCst);
        (at_ms != u64::MAX).then(|| Timestamp::from_ms(at_ms))
    }

    /// Waits until it is set earlier.
    pub(crate) async fn set_earlier(&self) {
        self.earlier.notified().await;
    }
}
