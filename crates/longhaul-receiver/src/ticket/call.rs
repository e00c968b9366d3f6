//! A call of a client without tasks: a durable task, a wait, and then its result or a ticket.

use std::sync::Arc;
use std::time::Duration;

use longhaul_engine::{Engine, EngineError, NewCall};
use longhaul_store::IdempotencyKey;
use longhaul_task::{Json, Retention, TaskId, TaskKey};
use longhaul_wire::jsonrpc::{RequestId, RpcError};
use longhaul_wire::{call_result, ticket};
use tokio_util::task::TaskTracker;

use super::names;
use super::wait::TaskWait;
use crate::exchange::Exchange;
use crate::operation::{CallWait, OperationResult, StreamWork};
use crate::stream::MessageStream;
use crate::{idempotency, refusal};

/// The time within which the same call joins the task of an earlier one.
const JOIN_MS_MAX: u64 = 5 * 60 * 1_000;

/// What a tool says about calls that are answered by their task's result.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallRules {
    /// The time within which the result of a task answers the call, for clients that take tasks.
    pub answers_within: Option<Duration>,
    /// Whether the task of a call ends if its client, which takes no tasks, gives up or disconnects.
    pub cancels_abandoned: bool,
    /// Whether the same call of a client without tasks, made again within a short while, joins the task that still runs.
    pub joins: bool,
}

/// A call whose tool and arguments have been checked.
pub(crate) struct WaitingCall {
    pub(crate) exchange: Exchange,
    pub(crate) tool: Arc<str>,
    pub(crate) input: Json,
    pub(crate) retention: Retention,
    pub(crate) id: TaskId,
    pub(crate) token: Option<RequestId>,
    pub(crate) rules: CallRules,
}

impl WaitingCall {
    /// Creates the task, or finds the one that the same call has created and that still runs, and waits for it.
    pub(crate) async fn run(self, stream: Option<Arc<MessageStream>>) -> Result<String, RpcError> {
        let exchange = self.exchange.clone();
        let (token, cancels_abandoned) = (self.token.clone(), self.rules.cancels_abandoned);
        let key = self.task().await.map_err(|error| refusal::of_engine(&error))?;
        let receiver = &exchange.receiver;
        let mut abandoned = Abandoned { engine: receiver.engine.clone(), tracker: receiver.tracker.clone(), key: None };
        if cancels_abandoned {
            abandoned.key = Some(key.clone());
        }
        let response = answer(&exchange, key, token, stream).await;
        abandoned.key = None;
        response
    }

    async fn task(self) -> Result<TaskKey, EngineError> {
        let engine = self.exchange.receiver.engine.clone();
        let now = engine.now().await?.as_ms();
        let mut key_of_now = None;
        if self.rules.joins {
            // A task of the last minutes is under the key of this period or of the one before.
            let period = now / JOIN_MS_MAX;
            for period in [period, period.saturating_sub(1)] {
                let Some(same) = self.same_call(period) else { break };
                match engine.find_created(&self.exchange.owner, &same).await? {
                    Some(found) if !found.task.is_settled() => return Ok(found.task.key.clone()),
                    // It has ended: this call is a new one, which cannot be found by a third.
                    Some(_) => {
                        key_of_now = None;
                        break;
                    }
                    None => key_of_now = key_of_now.or(Some(same)),
                }
            }
        }
        let (receiver, exchange) = (&self.exchange.receiver, &self.exchange);
        let new = NewCall {
            owner: exchange.owner.clone(),
            tool: Arc::clone(&self.tool),
            input: self.input.clone(),
            origin: receiver.origin(exchange.generation),
            id: Some(self.id.clone()),
            retention: Some(self.retention),
            idempotency: key_of_now.map(Box::new),
        };
        Ok(engine.create(new).await?.task.key.clone())
    }

    /// Names this call among those of its client in a period; `None` for a client that cannot be told from others.
    fn same_call(&self, period: u64) -> Option<IdempotencyKey> {
        idempotency::of_same_call(&self.exchange, &self.tool, self.input.as_str(), period)
    }
}

/// The result of the task, or a ticket.
async fn answer(
    exchange: &Exchange,
    key: TaskKey,
    token: Option<RequestId>,
    stream: Option<Arc<MessageStream>>,
) -> Result<String, RpcError> {
    let patience = exchange.receiver.tickets().map(|tickets| tickets.patience).unwrap_or_default();
    let task = TaskWait { exchange: exchange.clone(), key, token, stream }.run(patience).await?;
    let (to, view) = (exchange.reply_to(), task.view());
    match exchange.generation.answer(&to, &view) {
        Some(answer) => answer,
        None => Ok(call_result::complete(&to, &ticket::ticket(&view, &names(exchange)))),
    }
}

/// Continues the wait of a call whose stream was lost, perhaps with the process.
pub(crate) async fn resume(exchange: &Exchange, key: TaskKey) -> Result<OperationResult, RpcError> {
    exchange.look_up(&key).await?;
    let waiting = exchange.clone();
    Ok(OperationResult::Work(StreamWork {
        exchange: exchange.clone(),
        task: Some(key.id.clone()),
        call: Some(CallWait::Patience),
        tool: None,
        run: Box::new(move |stream| {
            Box::pin(async move { Ok(answer(&waiting, key, None, Some(stream)).await?.into()) })
        }),
    }))
}

/// Cancels the task of a call that is dropped before it was answered, if the tool says so.
struct Abandoned {
    engine: Engine,
    tracker: TaskTracker,
    key: Option<TaskKey>,
}

impl Drop for Abandoned {
    fn drop(&mut self) {
        if let Some(key) = self.key.take() {
            let engine = self.engine.clone();
            self.tracker.spawn(async move {
                if let Err(error) = engine.cancel(&key, None).await {
                    tracing::debug!(task = %key.id, %error, "the task of an abandoned call goes on");
                }
            });
        }
    }
}
