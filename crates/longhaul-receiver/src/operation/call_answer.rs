//! The answer to a call by the result of the task that it has created.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use longhaul_task::TaskKey;
use longhaul_wire::RelatedTask;
use longhaul_wire::jsonrpc::RpcError;
use tokio_util::sync::CancellationToken;

use super::end_wait::EndWait;
use super::{CallWait, OperationResult, StreamWork, WorkResult};
use crate::exchange::Exchange;
use crate::loaded_task::LoadedTask;
use crate::refusal;
use crate::session::{LastNotified, Session};
use crate::stream::MessageStream;

/// Tells the client that its call has created a task.
pub(super) async fn announce(exchange: &Exchange, task: &TaskKey, stream: &Arc<MessageStream>) {
    let related = RelatedTask { generation: exchange.generation, task_id: &task.id, parent: None };
    if let Some(announcement) = exchange.generation.announcement(related) {
        stream.send(announcement).await;
    }
}

/// Answers a call when its task has ended. A client that cancels the call cancels the task, and gets no answer.
pub(super) async fn wait_for_end_or_cancellation(
    exchange: Exchange,
    session: &Arc<Session>,
    task: LastNotified,
    stream: &Arc<MessageStream>,
    cancel_requested: CancellationToken,
) -> Result<WorkResult, RpcError> {
    let key = task.key.clone();
    session.register_creation(&exchange.id, key.clone());
    // The cancellation may have come before the task was there.
    if cancel_requested.is_cancelled()
        && let Some(task) = session.take_creation(&exchange.id)
    {
        session.cancel_created(&task).await;
    }
    session.follow(task, true);
    let id = exchange.id.clone();
    let mut answer = pin!(wait(exchange, key.clone(), stream));
    let response = tokio::select! {
        biased;
        () = cancel_requested.cancelled() => None,
        answer = &mut answer => Some(answer),
    };
    session.take_creation(&id);
    if response.is_none() {
        // Also if the cancellation does it, too. Until the task has ended, `answer` keeps this stream the one on which the client
        // hears of the task: its open questions would be asked again on another one.
        session.cancel_created(&key).await;
    }
    Ok(WorkResult { response: response.transpose()?, created: None })
}

/// The answer of a task that ends within `limit`. `None` if it takes longer, asks a question or cannot be read, or if the server
/// closes: then the caller answers with the task.
pub(super) async fn wait_for_result(
    exchange: &Exchange,
    key: &TaskKey,
    limit: Duration,
) -> Option<Result<String, RpcError>> {
    let receiver = &exchange.receiver;
    let mut watch = receiver.engine.watch(key);
    let mut task = LoadedTask::read(receiver, key, exchange.session.as_deref()).await.ok()?;
    let ended = async {
        loop {
            if let Some(answer) = answer(exchange, &task) {
                return Some(answer);
            }
            if task.snapshot.task.phase.questions().is_some() {
                return None;
            }
            watch.changed().await;
            task = LoadedTask::read(receiver, key, exchange.session.as_deref()).await.ok()?;
        }
    };
    tokio::select! {
        ended = tokio::time::timeout(limit, ended) => ended.ok().flatten(),
        () = receiver.closing.cancelled() => None,
    }
}

/// Continues the wait of a call whose stream was lost, perhaps with the process.
pub(crate) async fn resume(exchange: &Exchange, key: TaskKey) -> Result<OperationResult, RpcError> {
    let task = exchange.look_up(&key).await?;
    if let Some(answer) = answer(exchange, &task) {
        return answer.map(OperationResult::Ready);
    }
    exchange.follow(&task.snapshot.task, true);
    let waiting = exchange.clone();
    Ok(OperationResult::Work(StreamWork {
        exchange: exchange.clone(),
        task: Some(key.id.clone()),
        creation: Some(key.clone()),
        call: Some(CallWait::UntilEnd),
        tool: None,
        run: Box::new(move |stream| Box::pin(async move { Ok(wait(waiting, key, &stream).await?.into()) })),
    }))
}

/// Waits until the task has ended, and answers the call by its result.
pub(super) async fn wait(exchange: Exchange, key: TaskKey, stream: &Arc<MessageStream>) -> Result<String, RpcError> {
    let watch = exchange.receiver.engine.watch(&key);
    let task = exchange.look_up(&key).await?;
    if let Some(answer) = answer(&exchange, &task) {
        return answer;
    }
    let answer = EndWait::new(exchange, &task.snapshot.task, watch).until(stream, answer).await?;
    answer.unwrap_or_else(|| Err(refusal::task_goes_on(key.id.shown())))
}

fn answer(exchange: &Exchange, task: &LoadedTask) -> Option<Result<String, RpcError>> {
    exchange.generation.answer(&exchange.reply_to(), &task.view())
}
