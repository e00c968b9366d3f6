//! The result of a task. In the generations where this request blocks, it is answered when the task has ended.

use std::sync::Arc;

use longhaul_engine::{EngineError, audit};
use longhaul_store::Watch;
use longhaul_task::{TaskId, TaskKey};
use longhaul_wire::jsonrpc::RpcError;

use super::{OperationResult, StreamWork, WorkResult};
use crate::exchange::Exchange;
use crate::loaded_task::LoadedTask;
use crate::refusal;
use crate::stream::MessageStream;

pub(crate) async fn perform(exchange: &Exchange, id: TaskId) -> Result<OperationResult, RpcError> {
    let key = exchange.key(id);
    // Before the reading, so that the wait below cannot miss a change.
    let watch = exchange.receiver.engine.watch(&key);
    let task = exchange.look_up(&key).await?;
    if let Some(response) = exchange.generation.result(&exchange.reply_to(), &task.view()) {
        return Ok(OperationResult::Ready(response));
    }
    exchange.follow(&task.snapshot.task, true);
    let waiting = exchange.clone();
    let has_questions = task.snapshot.task.phase.questions().is_some();
    Ok(OperationResult::Work(StreamWork {
        exchange: exchange.clone(),
        task: Some(key.id.clone()),
        tool: None,
        run: Box::new(move |stream| Box::pin(wait(waiting, key, has_questions, watch, stream))),
    }))
}

/// Waits for the end of a task. Meanwhile the client hears of the task on this stream.
async fn wait(
    exchange: Exchange,
    key: TaskKey,
    mut has_questions: bool,
    mut watch: Watch,
    stream: Arc<MessageStream>,
) -> Result<WorkResult, RpcError> {
    let receiver = &exchange.receiver;
    let _marks_stream = exchange.session.as_ref().map(|session| session.wait_for_result(&key.id, &stream));
    let stopped = receiver.response_time_over();
    tokio::pin!(stopped);
    loop {
        // Without a reader nothing is read: the waits that clients have abandoned keep no copy of the result.
        let changed = async {
            watch.changed().await;
            stream.reader().await;
        };
        tokio::select! {
            () = changed => {}
            () = &mut stopped => return Err(refusal::of_engine(&EngineError::Draining)),
            // With the endpoint closed, the questions cannot be answered.
            () = receiver.closing.cancelled(), if has_questions => {
                return Err(refusal::of_engine(&EngineError::Draining));
            }
        }
        let task = LoadedTask::read(receiver, &key).await.map_err(|error| refusal::of_engine(&error))?;
        if let Some(response) = exchange.generation.result(&exchange.reply_to(), &task.view()) {
            if let Some(session) = &exchange.session {
                session.send_log(&task.snapshot.task, &stream);
            }
            audit::read(exchange.source(), &task.snapshot.task);
            return Ok(response.into());
        }
        exchange.follow(&task.snapshot.task, true);
        has_questions = task.snapshot.task.phase.questions().is_some();
    }
}
