//! A call with valid arguments: runs it while the client waits, or [creates a task](super::create_task).
//!
//! A tool may ask the client before its task exists, and during an ordinary call. In a session the question goes out on
//! the stream of the call, and the call continues with the answer. Without a session the call ends with the questions;
//! the client calls again with the answers, and earlier answers travel along in a sealed `requestState`.

use std::collections::HashMap;
use std::sync::Arc;

use longhaul_engine::audit::AuditedCall;
use longhaul_engine::{CallEnd, CallOptions, OpenQuestion};
use longhaul_store::IdempotencyKey;
use longhaul_task::{Json, Outcome, Progress, TaskId, TaskKey};
use longhaul_wire::call_result::{self, InputRequest, ResultForm};
use longhaul_wire::jsonrpc::{RequestId, RpcError};
use longhaul_wire::{CallMode, InputResponses, LogLevel, Ttl, refusal as wire_refusal};
use tokio::sync::watch;

use super::call_client::{CallClient, ProgressReport};
use super::{CallWait, OperationResult, StreamWork, WorkResult};
use crate::catalogue::CatalogueTool;
use crate::exchange::Exchange;
use crate::receiver::ReceiverInner;
use crate::refusal;
use crate::seal::{CallBinding, CallState};
use crate::stream::MessageStream;

/// A call whose arguments have been checked: of a tool, or of a function that makes the result of another request.
pub(super) struct CheckedCall {
    pub(super) exchange: Exchange,
    pub(super) tool: Arc<str>,
    /// The catalogue entry of the tool, as the request found it. `None` if the function is not a tool.
    pub(super) catalogue_tool: Option<Arc<CatalogueTool>>,
    pub(super) input: Json,
    pub(super) form: ResultForm,
    pub(super) mode: CallMode,
    pub(super) ttl: Ttl,
    /// The task under the ID that the requestor chose.
    pub(super) chosen: Option<TaskKey>,
    /// A relay has sent the request to an earlier server, too.
    pub(super) is_repeated: bool,
    pub(super) progress_token: Option<RequestId>,
    pub(super) log_level: Option<LogLevel>,
    /// Answers to questions of earlier rounds, by question key.
    pub(super) answers: HashMap<String, Json>,
    /// The ID that an earlier round has chosen for the task.
    pub(super) task_id: Option<TaskId>,
    pub(super) idempotency: Option<Box<IdempotencyKey>>,
}

impl CheckedCall {
    /// Takes the answers of earlier rounds from the sealed state, and those of this round.
    pub(super) async fn take_answers(
        &mut self,
        request_state: Option<&str>,
        input_responses: Option<&InputResponses<'_>>,
    ) -> Result<(), RpcError> {
        let receiver = &self.exchange.receiver;
        if let Some(text) = request_state {
            let now = receiver.engine.now().await.map_err(|error| refusal::of_engine(&error))?;
            let state = receiver.seal.open_state(&self.binding(), text, now).ok_or_else(wire_refusal::no_such_state)?;
            (self.answers, self.task_id) = (state.answers, Some(state.task_id));
        }
        if let Some(responses) = input_responses {
            for (key, body) in responses.iter() {
                self.answers.entry(key.to_owned()).or_insert_with(|| Json::from_text(body.get()));
            }
        }
        Ok(())
    }

    /// Whether it runs on a stream, because messages can precede the response. Otherwise it [runs at once](Self::run_at_once).
    pub(super) fn needs_stream(&self) -> bool {
        let is_ordinary = self.mode == CallMode::Ordinary;
        let sends_notifications = is_ordinary && (self.progress_token.is_some() || self.log_level.is_some());
        self.exchange.session.is_some() || sends_notifications
    }

    /// Runs the call and returns its response. It borrows the call, because a move into another future would copy it for every
    /// creation.
    pub(super) async fn run_at_once(&mut self) -> Result<OperationResult, RpcError> {
        let response = self.run(None).await?.response;
        Ok(OperationResult::Ready(response.unwrap_or_default()))
    }

    pub(super) async fn run_on_stream(mut self) -> OperationResult {
        // A request that a relay repeats has a task from the start. An error of the store is found again by `create_task`.
        let creation = match &self.chosen {
            Some(task) if self.has_created(task).await.unwrap_or(false) => Some(task.clone()),
            _ => None,
        };
        let task = self.chosen.as_ref().map(|key| key.id.clone());
        OperationResult::Work(StreamWork {
            exchange: self.exchange.clone(),
            call: task.is_some().then_some(CallWait::UntilEnd),
            task,
            creation,
            tool: Some(Arc::clone(&self.tool)),
            run: Box::new(move |stream| Box::pin(async move { self.run(Some(stream)).await })),
        })
    }

    fn binding(&self) -> CallBinding<'_> {
        CallBinding { owner: &self.exchange.owner, tool: &self.tool, arguments: self.input.as_str() }
    }

    async fn run(&mut self, stream: Option<Arc<MessageStream>>) -> Result<WorkResult, RpcError> {
        // Boxed, because the future of a creation would otherwise be as large as that of an ordinary call.
        match self.mode {
            CallMode::Ordinary => Box::pin(self.run_now(stream)).await,
            CallMode::Task | CallMode::TaskOrResult | CallMode::TaskThenResult => self.create_task(stream).await,
        }
    }

    pub(super) async fn engine_call(
        &mut self,
        stream: Option<Arc<MessageStream>>,
        progress: Option<watch::Sender<Option<Progress>>>,
    ) -> Result<CallOptions, RpcError> {
        let id = match self.task_id.take() {
            Some(id) => id,
            None => self.exchange.receiver.mint_id().await?,
        };
        self.task_id = Some(id.clone());
        let client = CallClient { exchange: self.exchange.clone(), stream, log_level: self.log_level };
        Ok(CallOptions {
            owner: self.exchange.owner.clone(),
            id: id.as_str().into(),
            answers: std::mem::take(&mut self.answers),
            requestor: Arc::new(client),
            progress,
        })
    }

    /// Runs the tool while the client waits.
    async fn run_now(&mut self, stream: Option<Arc<MessageStream>>) -> Result<WorkResult, RpcError> {
        let (sender, updates) = watch::channel(None);
        let reports_progress = self.progress_token.is_some();
        let call = self.engine_call(stream.clone(), reports_progress.then_some(sender)).await?;
        let audited = AuditedCall::started(self.exchange.source(), &self.tool);
        let end = self.exchange.receiver.engine.call(&self.tool, self.input.clone(), call);
        let end = async {
            match (&self.progress_token, &stream) {
                (Some(token), Some(stream)) => ProgressReport::new(token, updates, stream).until(end).await,
                _ => end.await,
            }
        };
        let end = until_stop(&self.exchange.receiver, end).await?;
        audited.ended(&end);
        self.response_to(end.map_err(|error| refusal::of_engine_for(self.form, &error))?).await
    }

    pub(super) async fn response_to(&self, end: CallEnd) -> Result<WorkResult, RpcError> {
        let to = self.exchange.reply_to();
        match end {
            CallEnd::Done(Outcome::Result { body, .. }) => Ok(call_result::complete_as(self.form, &to, &body).into()),
            CallEnd::Done(Outcome::Error(error)) => Err(self.form.error(&error, to.revision)),
            CallEnd::Done(Outcome::Cancelled) => Err(RpcError::internal("The call was cancelled.")),
            CallEnd::Stopped(stop) => Err(refusal::of_stop(&stop, self.exchange.peer.revision)),
            CallEnd::Asks { questions, answered } => {
                let receiver = &self.exchange.receiver;
                let now = receiver.engine.now().await.map_err(|error| refusal::of_engine(&error))?;
                let random = &**receiver.engine.random();
                let task_id = self.task_id.clone().unwrap_or_else(|| TaskId::mint(now, random.bits()));
                let state = CallState::new(answered, task_id, now);
                let state = receiver.seal.close_state(&self.binding(), &state, random);
                let requests: Vec<InputRequest> = questions
                    .into_iter()
                    .map(|OpenQuestion { key, kind, params }| InputRequest { key, kind, params })
                    .collect();
                Ok(call_result::input_required(&to, &requests, state.as_deref()).into())
            }
        }
    }
}

/// Waits for a handler until the server stops. Otherwise the connection would be cut without a response.
pub(super) async fn until_stop<T>(receiver: &ReceiverInner, work: impl Future<Output = T>) -> Result<T, RpcError> {
    tokio::select! {
        biased;
        end = work => Ok(end),
        () = receiver.response_time_over() => Err(refusal::call_stopped()),
    }
}
