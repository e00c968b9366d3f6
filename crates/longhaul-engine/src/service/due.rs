//! Ends what is overdue, wakes what has slept, deletes what is expired. Sleeps until something is due.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use longhaul_store::StoreError;
use longhaul_task::transition::Shorten;
use longhaul_task::{Event, Phase, Task, Timestamp, TransitionError};

use crate::core::due_event;
use crate::shell::EngineInner;

/// How many due tasks are dealt with before looking again.
const BATCH: usize = 256;

/// The longest sleep: a clock that was set forward is noticed by then.
pub(crate) const SLEEP_MS_MAX: u64 = 60_000;

/// How much the clock and the process's own time may differ without the clock having been set.
const CLOCKS_DIFFER_MS_MAX: u64 = 1_000;

/// The pause after the store could not be asked.
const RETRY_MS: u64 = 1_000;

pub(crate) async fn run(engine: Arc<EngineInner>) {
    loop {
        engine.due.reset();
        match pass(&engine).await {
            Ok(true) => {}
            Ok(false) => sleep(&engine).await,
            Err(error) => {
                tracing::debug!(%error, "could not look for due tasks");
                tokio::time::sleep(Duration::from_millis(RETRY_MS)).await;
            }
        }
    }
}

/// Deals with what is due now, and says whether there may be more.
async fn pass(engine: &Arc<EngineInner>) -> Result<bool, StoreError> {
    let due = engine.store.due(BATCH).await?;
    engine.due.set_by_sleeper(due.next);
    let more = due.tasks.len() == BATCH;
    // All at once, so that they share commits.
    for done in join_all(due.tasks.iter().map(|task| act(engine, task, due.now))).await {
        done?;
    }
    Ok(more)
}

async fn act(engine: &Arc<EngineInner>, task: &Task, now: Timestamp) -> Result<(), StoreError> {
    let applied = match due_event(task, now) {
        Some(event) => engine.apply(&task.key, unless_clock_was_set(engine, task, event, now)).await,
        None => Err(StoreError::Refused(TransitionError::TooEarly)),
    };
    match applied {
        // The clock went back since it was due: it will be again.
        Err(StoreError::Refused(TransitionError::TooEarly)) => engine.due.set_by_sleeper(task.due_at()),
        // It moved on meanwhile, and is not due any more or gone.
        Ok(_) | Err(StoreError::NotFound | StoreError::Refused(_)) => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Replaces the end of a task whose attempt has run too long by the clock alone: the clock was set forward since it began.
fn unless_clock_was_set(engine: &EngineInner, task: &Task, event: Event, now: Timestamp) -> Event {
    let ran_ms = matches!(event, Event::Overdue(_)).then(|| engine.ran_ms(&task.key, task.fence)).flatten();
    match (&task.phase, ran_ms) {
        (Phase::Running { .. }, Some(ran_ms))
            if ran_ms.saturating_add(CLOCKS_DIFFER_MS_MAX) < task.policy.running_ms_max && !task.life_is_over(now) =>
        {
            Event::Shorten(Shorten { ran_ms: Some(ran_ms) })
        }
        _ => event,
    }
}

async fn sleep(engine: &EngineInner) {
    let Ok(now) = engine.store.now().await else { return };
    let wait_ms = engine.due.at().map_or(SLEEP_MS_MAX, |at| at.ms_since(now).min(SLEEP_MS_MAX));
    tokio::select! {
        biased;
        () = engine.due.set_earlier() => {}
        () = tokio::time::sleep(Duration::from_millis(wait_ms)) => {}
    }
}
