//! The cancellation of a task. When the answer is sent, the task is cancelled for good.

use std::sync::Arc;

use longhaul_engine::{EngineError, audit};
use longhaul_store::{Snapshot, StoreError};
use longhaul_task::{TaskId, TransitionError};
use longhaul_wire::jsonrpc::RpcError;

use crate::exchange::Exchange;
use crate::loaded_task::LoadedTask;
use crate::refusal;

pub(super) async fn perform(exchange: &Exchange, id: TaskId) -> Result<String, RpcError> {
    let receiver = &exchange.receiver;
    let key = exchange.find_key(id).await;
    let failed = |error: EngineError| refusal::of_engine(&error);
    let cancelled = match receiver.rates.look_up(&exchange.owner, receiver.engine.cancel(&key, None)).await? {
        Ok(task) => Some(task),
        Err(EngineError::Store(StoreError::Refused(TransitionError::Settled))) => None,
        Err(error) => return Err(failed(error)),
    };
    let found = receiver.engine.read(&key).await;
    let snapshot = match &cancelled {
        // The task may have been deleted since, and its ID used again.
        Some(task) => {
            let same = found.ok().filter(|found| found.task.fence == task.fence);
            Snapshot { task: Arc::clone(task), progress: same.and_then(|found| found.progress) }
        }
        None => found.map_err(failed)?,
    };
    let task = LoadedTask::of(receiver, snapshot, exchange.session.as_deref()).await.map_err(failed)?;
    let exchange = exchange.about(&task.snapshot.task);
    let to = exchange.reply_to();
    let answer = if cancelled.is_some() {
        Ok(exchange.generation.cancelled(&to, &task.view()))
    } else {
        exchange.generation.cancelled_too_late(&to, &task.view())
    };
    if answer.is_ok() {
        audit::cancelled(exchange.source(), &key.id, cancelled.is_some());
    }
    answer
}
