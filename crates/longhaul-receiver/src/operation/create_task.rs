//! The task that a call becomes, and how long it is kept.

use std::sync::Arc;

use longhaul_engine::{EngineError, NewCall, audit};
use longhaul_store::{CreateResult, Snapshot, StoreError};
use longhaul_task::{Retention, Task, TaskId, TaskKey, TransitionError};
use longhaul_wire::jsonrpc::RpcError;
use longhaul_wire::{CallMode, TaskView, Ttl, refusal as wire_refusal};

use super::checked_call::{CheckedCall, until_stop};
use super::{WorkResult, call_answer};
use crate::loaded_task::LoadedTask;
use crate::refusal;
use crate::session::LastNotified;
use crate::stream::MessageStream;

/// The shortest retention that a requestor can choose: the result must be fetchable.
const TTL_MS_MIN: u64 = 1_000;

impl CheckedCall {
    /// Creates the task, after the tool has asked what it wants to know before. Rare branches are boxed: otherwise the future
    /// of every creation would reserve room for them.
    pub(super) async fn create_task(&mut self, stream: Option<Arc<MessageStream>>) -> Result<WorkResult, RpcError> {
        let form = self.form;
        let failed = |error: EngineError| refusal::of_engine_for(form, &error);
        let mut input = self.input.clone();
        // Before anything is asked or admitted: a request whose ID is used is refused, or joins its task.
        if let Some(chosen) = &self.chosen {
            let shown = TaskId::parse(chosen.id.shown()).unwrap_or_else(|_| chosen.id.clone());
            // The session may know a task under this ID that it did not name itself.
            let known = Box::pin(self.exchange.find_key(shown)).await;
            if let Ok(found) = self.exchange.receiver.engine.read(&known).await {
                return Box::pin(self.answer_used_id(&found.task, stream)).await;
            }
        }
        if self.exchange.receiver.engine.asks_before_task(&self.tool) {
            // If an earlier request under the same key has created the task, the client is not asked again.
            if let Some(request) = &self.idempotency
                && let Some(found) =
                    self.exchange.receiver.engine.find_created(&self.exchange.owner, request).await.map_err(failed)?
            {
                return Box::pin(self.created_earlier(found.task)).await;
            }
            let call = Box::pin(self.engine_call(stream.clone(), None)).await?;
            let receiver = &self.exchange.receiver;
            let asking = Box::pin(receiver.engine.before_task(&self.tool, input, call));
            let asked = until_stop(receiver, asking).await?;
            input = match asked.map_err(failed)? {
                Ok(input) => input,
                Err(end) => return Box::pin(self.response_to(end)).await,
            };
        }
        let exchange = &self.exchange;
        let receiver = &exchange.receiver;
        let usual = receiver.engine.retention(&self.tool).map_err(failed)?;
        let cancel_requested = exchange.session.as_ref().map(|session| session.make_uncancellable(&exchange.id));
        let chosen_id = self.chosen.as_ref().map(|key| key.id.clone());
        let new = NewCall {
            owner: exchange.owner.clone(),
            tool: Arc::clone(&self.tool),
            input,
            origin: receiver.origin(exchange.generation),
            id: chosen_id.or_else(|| self.task_id.clone()),
            retention: Some(self.retention(usual)),
            idempotency: self.idempotency.clone(),
        };
        let (CreateResult { task, existed }, log) = if exchange.session.is_some() {
            let created = Box::pin(receiver.engine.create_and_listen(new)).await;
            let (created, log) = created.map_err(|error| match (&error, &self.chosen) {
                (EngineError::Store(StoreError::Refused(TransitionError::DuplicateId)), Some(chosen)) => {
                    wire_refusal::task_id_exists(chosen.id.shown())
                }
                _ => failed(error),
            })?;
            (created, Some(log))
        } else {
            match (receiver.engine.create(new).await, &self.task_id) {
                // The task exists: the client repeats the last round because the response was lost.
                (Err(EngineError::Store(StoreError::Refused(TransitionError::DuplicateId))), Some(id)) => {
                    let task = receiver.engine.read(&exchange.key(id.clone())).await.map_err(failed)?.task;
                    (CreateResult { task, existed: true }, None)
                }
                (created, _) => (created.map_err(failed)?, None),
            }
        };
        if existed {
            return Box::pin(self.created_earlier(task)).await;
        }
        let last = log.map(|log| LastNotified {
            progress_token: self.progress_token.clone(),
            log: Some(log),
            ..LastNotified::of(&task, exchange.generation)
        });
        let last = match (&exchange.session, last, stream, cancel_requested, self.mode) {
            (Some(session), Some(last), Some(stream), Some(cancel_requested), CallMode::TaskThenResult) => {
                let waiting = exchange.clone();
                let answer = async {
                    call_answer::announce(exchange, &task.key, &stream).await;
                    call_answer::wait_for_end_or_cancellation(waiting, session, last, &stream, cancel_requested).await
                };
                return Box::pin(answer).await;
            }
            (_, last, ..) => last,
        };
        if self.mode == CallMode::TaskOrResult
            && let Some(limit) = self.catalogue_tool.as_ref().and_then(|tool| tool.rules.answers_within)
            && let Some(answer) = Box::pin(call_answer::wait_for_result(exchange, &task.key, limit)).await
        {
            return Ok(answer?.into());
        }
        let view = TaskView { poll_interval_ms: receiver.options.poll_interval_ms, ..TaskView::of(&task) };
        let sentence = self.catalogue_tool.as_ref().and_then(|tool| tool.immediate_response.as_deref());
        let response = exchange.generation.created(&exchange.reply_to(), &view, sentence);
        Ok(WorkResult { response: Some(response), created: last })
    }

    /// Answers a request whose task ID is used. A request that a relay repeats gets the result of the task that its first copy
    /// created. Any other request is refused.
    async fn answer_used_id(&self, task: &Task, stream: Option<Arc<MessageStream>>) -> Result<WorkResult, RpcError> {
        let exchange = &self.exchange;
        let is_own = self.has_created(&task.key).await?;
        match (&exchange.session, stream, self.mode) {
            (Some(session), Some(stream), CallMode::TaskThenResult) if is_own => {
                let cancel_requested = session.make_uncancellable(&exchange.id);
                // The announcement may have been lost with the first server.
                call_answer::announce(exchange, &task.key, &stream).await;
                if task.is_settled() {
                    let answer = call_answer::wait(exchange.clone(), task.key.clone(), &stream).await?;
                    return Ok(answer.into());
                }
                let last = LastNotified {
                    progress_token: self.progress_token.clone(),
                    ..LastNotified::of(task, exchange.generation)
                };
                call_answer::wait_for_end_or_cancellation(exchange.clone(), session, last, &stream, cancel_requested)
                    .await
            }
            _ => Err(wire_refusal::task_id_exists(task.key.id.shown())),
        }
    }

    /// Whether a relay repeats this request, and its first copy has created the task. Another request can have the same ID.
    pub(super) async fn has_created(&self, task: &TaskKey) -> Result<bool, RpcError> {
        let Some(request) = self.idempotency.as_deref().filter(|_| self.is_repeated) else { return Ok(false) };
        match self.exchange.receiver.engine.find_created(&self.exchange.owner, request).await {
            Ok(found) => Ok(found.is_some_and(|found| found.task.key == *task)),
            Err(EngineError::Store(StoreError::IdempotencyKeyUsed)) => Ok(false),
            // The task may be that of the first copy, so the used ID is no reason to refuse this one.
            Err(error) => Err(refusal::of_engine(&error)),
        }
    }

    /// The response to a repeated request: the task that the first request created, as it is now.
    async fn created_earlier(&self, task: Arc<Task>) -> Result<WorkResult, RpcError> {
        let (exchange, receiver) = (&self.exchange, &self.exchange.receiver);
        // If the task was deleted meanwhile, the response shows it as it was found.
        let found = receiver.engine.read(&task.key).await.unwrap_or(Snapshot { task, progress: None });
        let task = LoadedTask::of(receiver, found, exchange.session.as_deref()).await;
        let task = task.map_err(|error| refusal::of_engine(&error))?;
        let response = exchange.generation.created_earlier(&exchange.reply_to(), &task.view());
        let task = &task.snapshot.task;
        audit::read(exchange.source(), task);
        let is_followed = exchange.session.is_some() && !task.is_settled();
        let created = is_followed.then(|| LastNotified {
            progress_token: self.progress_token.clone(),
            ..LastNotified::of(task, exchange.generation)
        });
        Ok(WorkResult { response: Some(response), created })
    }

    /// The retention that the requestor asks for, within the limits of the tool and the server. It is shorter for a task of
    /// an anonymous caller.
    pub(super) fn retention(&self, usual: Retention) -> Retention {
        let options = &self.exchange.receiver.options;
        let longest = match usual {
            Retention::FromCreation(ms) => ms,
            Retention::FromEnd(_) | Retention::Unlimited => options.ttl_ms_max,
        };
        let retention = match self.ttl {
            Ttl::Ms(ms) => Retention::FromCreation(ms.max(TTL_MS_MIN).min(longest)),
            Ttl::MsAfterEnd(ms) => Retention::FromEnd(ms.max(TTL_MS_MIN).min(longest)),
            Ttl::Usual | Ttl::UsualAfterEnd | Ttl::Unlimited => usual,
        };
        let retention =
            if self.exchange.is_identified { retention } else { retention.at_most(options.anonymous_kept_ms_max) };
        match (self.ttl, retention) {
            (Ttl::UsualAfterEnd, Retention::FromCreation(ms)) => Retention::FromEnd(ms),
            _ => retention,
        }
    }
}
