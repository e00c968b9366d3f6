//! The result of a task. In the generations where this request blocks, it is answered when the task has ended.

use longhaul_engine::EngineError;
use longhaul_task::{TaskId, TaskKey};
use longhaul_wire::jsonrpc::RpcError;

use super::end_wait::EndWait;
use super::{OperationResult, StreamWork};
use crate::exchange::Exchange;
use crate::loaded_task::LoadedTask;
use crate::refusal;

pub(super) async fn perform(exchange: &Exchange, id: TaskId) -> Result<OperationResult, RpcError> {
    of(exchange, exchange.find_key(id).await).await
}

pub(crate) async fn of(exchange: &Exchange, key: TaskKey) -> Result<OperationResult, RpcError> {
    // Before the reading, so that the wait below cannot miss a change.
    let watch = exchange.receiver.engine.watch(&key);
    let task = exchange.look_up(&key).await?;
    let exchange = exchange.about(&task.snapshot.task);
    if let Some(response) = result(&exchange, &task) {
        return Ok(OperationResult::Ready(response));
    }
    exchange.follow(&task.snapshot.task, true);
    let wait = EndWait::new((*exchange).clone(), &task.snapshot.task, watch);
    Ok(OperationResult::Work(StreamWork {
        exchange: exchange.into_owned(),
        task: Some(key.id),
        creation: None,
        call: None,
        tool: None,
        run: Box::new(move |stream| {
            Box::pin(async move {
                let result = wait.until(&stream, result).await?;
                Ok(result.ok_or_else(|| refusal::of_engine(&EngineError::Draining))?.into())
            })
        }),
    }))
}

fn result(exchange: &Exchange, task: &LoadedTask) -> Option<String> {
    exchange.generation.result(&exchange.reply_to(), &task.view())
}
