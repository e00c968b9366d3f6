//! What runs beside the requests: recovery at the start, timers while it goes on, the end.

pub(crate) mod activity;
pub(crate) mod clock;
mod doubt;
pub(crate) mod due;
mod gone;
mod queue;
pub(crate) mod recovery;
pub(crate) mod shutdown;

use std::sync::Arc;

use longhaul_task::Timestamp;
use tokio::sync::Notify;

pub use self::activity::Activity;
use crate::core;
use crate::shell::EngineInner;

/// Starts everything that waits for time to pass.
pub(crate) fn start(engine: &Arc<EngineInner>) {
    let services: [fn(Arc<EngineInner>) -> futures_util::future::BoxFuture<'static, ()>; 5] = [
        |engine| Box::pin(doubt::run(engine)),
        |engine| Box::pin(doubt::recount(engine)),
        |engine| Box::pin(due::run(engine)),
        |engine| Box::pin(queue::run(engine)),
        |engine| Box::pin(gone::run(engine)),
    ];
    for service in services {
        let engine = Arc::clone(engine);
        tokio::spawn(async move {
            let stopping = engine.stopping.clone();
            stopping.run_until_cancelled(service(engine)).await;
        });
    }
}

/// An alarm that wakes its sleeper when it is set earlier.
#[derive(Debug, Default)]
pub(crate) struct DueAlarm {
    alarm: core::Alarm,
    changed: Notify,
}

impl DueAlarm {
    /// The sleeper wakes at this moment or before.
    pub(crate) fn at_latest(&self, at: Option<Timestamp>) {
        if self.alarm.set(at) {
            self.changed.notify_one();
        }
    }

    /// Another node may have set a time that this one does not know.
    pub(crate) fn check_now(&self) {
        self.changed.notify_one();
    }

    /// Called before the sleeper reads the due tasks.
    pub(crate) fn reset(&self) {
        self.alarm.reset();
    }

    /// Sets the time that the sleeper has just read. The sleeper is not woken.
    pub(crate) fn set_by_sleeper(&self, next: Option<Timestamp>) {
        self.alarm.set(next);
    }

    /// The moment that is set.
    pub(crate) fn at(&self) -> Option<Timestamp> {
        self.alarm.at()
    }

    /// Waits until it is set earlier.
    pub(crate) async fn set_earlier(&self) {
        self.changed.notified().await;
    }
}
