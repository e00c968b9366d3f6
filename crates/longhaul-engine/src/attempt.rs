//! Drives one attempt: the handler from its start to the write of its end.

use std::any::Any;
use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::FutureExt;
use longhaul_task::{Json, Outcome, TaskError};

use crate::core::Input;
use crate::gate::Gate;
use crate::shell::EngineInner;
use crate::task_link::TaskLink;
use crate::tool::Handler;
use crate::{Ctx, CtxError};

/// Runs the handler, gives its worker back while all of it waits, and says how it ended.
pub(crate) async fn drive(
    engine: &Arc<EngineInner>,
    link: TaskLink,
    handler: Arc<dyn Handler>,
    input: Json,
) -> Outcome {
    let (key, fence) = (link.key.clone(), link.fence);
    let gate = Arc::new(Gate::default());
    let mut running = catch_panic(handler, Ctx::for_task(Arc::new(link), Arc::clone(&gate)), input);
    let end = poll_fn(|cx| {
        gate.driven_by(cx.waker());
        let poll = running.as_mut().poll(cx);
        if poll.is_pending() {
            // Said again whenever it is so: a branch may have taken the worker and ended, all within this poll.
            gate.if_all_wait(|| engine.step(Input::Idle { key: key.clone(), fence }));
        }
        poll
    });
    match end.await {
        Ok(outcome) => outcome,
        Err(stop) => Outcome::Error(stop.task_error()),
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
