//! Drives one attempt: the handler from its start to its end, or until it is dropped because it only waits.

use std::any::Any;
use std::future::{poll_fn, ready};
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;

use futures_util::FutureExt;
use longhaul_task::{JournalEntry, Json, Outcome, TaskError};

use crate::core::Input;
use crate::shell::EngineInner;
use crate::task_link::{PARK_AFTER, TaskLink};
use crate::tool::{EngineTool, Handler};
use crate::wait_tracker::WaitTracker;
use crate::{Ctx, CtxError};

/// How an attempt ended.
pub(crate) enum AttemptResult {
    /// The handler returned. The entries are not written yet.
    Ended { outcome: Outcome, entries: Vec<JournalEntry> },
    /// The handler returned a tool error, and its tool retries failures. The entries are not written yet.
    Failed { outcome: Outcome, entries: Vec<JournalEntry> },
    /// The handler was dropped, because it only waited or because the attempt has lost its task.
    Dropped,
}

/// Runs the handler, and gives its worker back while every branch waits. The handler of a tool that resumes is dropped if it
/// waits for longer than [`PARK_AFTER`].
pub(crate) async fn drive(
    engine: &Arc<EngineInner>,
    link: Arc<TaskLink>,
    wait_tracker: Arc<WaitTracker>,
    tool: &EngineTool,
    input: Json,
) -> AttemptResult {
    if let Err(error) = link.load_journal().await {
        return AttemptResult::Ended { outcome: Outcome::Error(error.task_error()), entries: Vec::new() };
    }
    if let Some(returned) = link.journal.returned() {
        let outcome = returned.unwrap_or_else(|error| Outcome::Error(error.task_error()));
        return AttemptResult::Ended { outcome, entries: Vec::new() };
    }
    let (key, fence) = (link.key().clone(), link.fence());
    let mut running =
        catch_panic(Arc::clone(&tool.handler), Ctx::for_task(Arc::clone(&link), Arc::clone(&wait_tracker)), input);
    let mut park_time = None;
    loop {
        let end = poll_fn(|cx| {
            wait_tracker.set_waker(cx.waker());
            if let Poll::Ready(end) = running.as_mut().poll(cx) {
                return Poll::Ready(Some(end));
            }
            write_in_background(engine, &link);
            // Reported at every poll, because within one poll a branch may have taken the worker back and ended.
            let all_wait = wait_tracker.if_all_wait(|| engine.step(Input::Idle { key: key.clone(), fence }));
            if !all_wait || !link.journal.resumes() {
                park_time = None;
                return Poll::Pending;
            }
            // A resumed handler that has recorded nothing waits for the same as before, so it is dropped at once. If it stayed
            // in memory, each of several crashes in a row would count as a failed attempt.
            let waits_as_before = link.attempt() > 1 && !link.journal.has_new_entries();
            let new_time =
                || if waits_as_before { ready(()).boxed() } else { time_to_park(Arc::clone(engine)).boxed() };
            park_time.get_or_insert_with(new_time).poll_unpin(cx).map(|()| None)
        });
        match end.await {
            Some(end) => {
                drop(running);
                return finish(&link, end, tool.retries_failures).await;
            }
            None => {
                match Box::pin(link.park(&wait_tracker)).await {
                    Ok(true) => return AttemptResult::Dropped,
                    // The attempt has lost its task. A handler that was told to stop is not dropped here: it may still tidy up.
                    Err(CtxError::Cancelled) if !link.stop.is_cancelled() => return AttemptResult::Dropped,
                    Ok(false) | Err(_) => park_time = Some(tokio::time::sleep(PARK_AFTER).boxed()),
                }
            }
        }
    }
}

/// Starts to write the entries that are not written yet. The handler may wait for something other than its context, and its
/// next operation, which would write them, may come late.
fn write_in_background(engine: &Arc<EngineInner>, link: &Arc<TaskLink>) {
    // Nothing is started while an operation of the handler writes them. If that is dropped, the next poll starts the write.
    let is_being_written = link.writing.try_lock().is_err();
    if link.journal.has_unwritten() && !is_being_written && !link.writes_in_background.swap(true, Ordering::SeqCst) {
        let link = Arc::clone(link);
        engine.tracker.spawn(async move {
            loop {
                // If this fails, the attempt has lost its task, and its next operation returns the error.
                let written = link.write_entries().await;
                link.writes_in_background.store(false, Ordering::SeqCst);
                let more = written.is_ok() && link.journal.has_unwritten();
                if !more || link.writes_in_background.swap(true, Ordering::SeqCst) {
                    break;
                }
            }
        });
    }
}

async fn time_to_park(engine: Arc<EngineInner>) {
    tokio::select! {
        biased;
        () = engine.draining.cancelled() => {}
        () = tokio::time::sleep(PARK_AFTER) => {}
    }
}

async fn finish(link: &TaskLink, end: Result<Outcome, CtxError>, retries_failures: bool) -> AttemptResult {
    let end = match end {
        Ok(outcome) => link.journal.check_all_reached().map(|()| outcome),
        // Not a result of the handler, which would hide that it has changed.
        Err(CtxError::Final(outcome)) => link.journal.check_all_reached().and(Err(CtxError::Final(outcome))),
        Err(stop) => Err(stop),
    };
    let is_failure = matches!(end, Ok(Outcome::Result { is_error: true, .. }));
    let outcome = match end {
        Ok(outcome) => outcome,
        Err(CtxError::Final(outcome)) => *outcome,
        Err(stop) => Outcome::Error(stop.task_error()),
    };
    // Waits for a write under way, so that its entries are not written again.
    let _writing = link.writing.lock().await;
    let entries = link.journal.unwritten();
    if is_failure && retries_failures {
        AttemptResult::Failed { outcome, entries }
    } else {
        AttemptResult::Ended { outcome, entries }
    }
}

type HandlerFuture = Pin<Box<dyn Future<Output = Result<Outcome, CtxError>> + Send>>;

/// A handler that panics ends its task, not the server.
pub(crate) fn catch_panic(handler: Arc<dyn Handler>, ctx: Ctx, input: Json) -> HandlerFuture {
    let running = async move { handler.run(ctx, input).await };
    Box::pin(AssertUnwindSafe(running).catch_unwind().map(|end| match end {
        Ok(end) => end,
        Err(panic) => Ok(Outcome::Error(TaskError::panic(panic_message(&*panic)))),
    }))
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("it gave no reason")
}
