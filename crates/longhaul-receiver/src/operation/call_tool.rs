//! `tools/call`: as a task, or while the client waits.
//!
//! A tool may ask the client before its task exists, and during an ordinary call. In a session the question goes out on
//! the stream of the call, and the call continues with the answer. Without a session the call ends with the questions;
//! the client calls again with the answers, and earlier answers travel along in a sealed `requestState`.

use std::collections::HashMap;
use std::sync::Arc;

use longhaul_engine::audit::{self, AuditedCall};
use longhaul_engine::{CallEnd, CallOptions, EngineError, NewCall, OpenQuestion};
use longhaul_store::{CreateResult, IdempotencyKey, Snapshot, StoreError};
use longhaul_task::{Json, Outcome, Progress, Retention, Task, TaskId, TaskKey, TransitionError};
use longhaul_wire::call_result::{self, InputRequest, ResultForm};
use longhaul_wire::jsonrpc::{RequestId, RpcError};
use longhaul_wire::tool::TaskSupport;
use longhaul_wire::{CallMode, CallTool, Headers, InputResponses, LogLevel, RoutedRequest, TaskRequest, TaskView, Ttl};
use longhaul_wire::{headers as wire_headers, refusal as words};
use tokio::sync::watch;

use super::call_client::{CallClient, ProgressReport};
use super::{CallWait, OperationResult, StreamWork, WorkResult, call_answer};
use crate::catalogue::CatalogueTool;
use crate::exchange::Exchange;
use crate::loaded_task::LoadedTask;
use crate::receiver::ReceiverInner;
use crate::seal::{CallBinding, CallState};
use crate::session::LastNotified;
use crate::stream::MessageStream;
use crate::ticket::{self, RelayedCall, WaitingCall};
use crate::{CallRules, idempotency, refusal};

/// The shortest retention that a requestor can choose: the result must be fetchable.
const TTL_MS_MIN: u64 = 1_000;

pub(super) async fn perform(
    exchange: &Exchange,
    request: &RoutedRequest<'_>,
    call: &CallTool<'_>,
    headers: Option<&(dyn Headers + Sync)>,
) -> Result<OperationResult, RpcError> {
    let catalogue = exchange.receiver.catalogue.current();
    let Some(offered) = catalogue.tools.find(&call.name) else {
        // Boxed, because it would make the future of every call larger.
        let ticket = Box::pin(ticket::perform(exchange, &call.name, call.arguments, request.progress_token.as_ref()));
        return ticket.await.unwrap_or_else(|| Err(words::no_such_tool(&call.name)));
    };
    if let Some(headers) = headers.filter(|_| exchange.session.is_none()) {
        wire_headers::check_mirrored(headers, &offered.declaration, call.arguments)?;
    }
    let mode = exchange.generation.call_mode(call, &offered.declaration, exchange.peer)?;
    let as_task = mode != CallMode::Ordinary;
    let waits = !as_task && ticket_waits(exchange, offered);
    if !as_task && !waits && offered.declaration.task_support() == TaskSupport::Required {
        return Err(words::task_required(&offered.name));
    }
    if call.is_repeated && !as_task && !waits {
        return Err(words::not_repeated());
    }
    if let Err(wrong) = offered.declaration.check_arguments(call.arguments) {
        return Ok(OperationResult::Ready(call_result::complete(&exchange.reply_to(), &wrong.to_result())));
    }
    let chosen_id = call.task.as_ref().filter(|_| as_task).and_then(|request| request.id.clone());
    let chosen = chosen_id.map(|id| exchange.chosen_key(id)).transpose()?;
    // Without a task nothing is stored under the key, so it has no effect. An ID of the requestor's own says the same.
    let idempotency =
        if (as_task && chosen.is_none()) || waits { idempotency::of_call(exchange, call, headers)? } else { None };
    let mut tool_call = ToolCall {
        exchange: exchange.clone(),
        tool: Arc::clone(&offered.name),
        input: Json::from_text(call.arguments.get()),
        form: ResultForm::Tool,
        mode,
        ttl: call.task.as_ref().map(|request| request.ttl).unwrap_or_default(),
        chosen,
        progress_token: request.progress_token.clone(),
        log_level: request.log_level,
        answers: HashMap::new(),
        task_id: None,
        idempotency: idempotency.map(Box::new),
    };
    tool_call.take_answers(call.request_state.as_deref(), call.input_responses.as_ref()).await?;
    if waits {
        let relay = call.relayed_ms.map(|sent_ms| RelayedCall { sent_ms, is_repeated: call.is_repeated });
        return Box::pin(tool_call.wait(&offered.rules, relay)).await;
    }
    tool_call.begin().await
}

/// A request other than `tools/call` whose result a function of the engine makes: a prompt, a resource, a completion.
pub(super) struct FunctionCall<'a> {
    /// The name under which the engine runs the function.
    pub(super) engine_name: Arc<str>,
    /// The parameters of the request.
    pub(super) input: Json,
    pub(super) form: ResultForm,
    pub(super) input_responses: Option<&'a InputResponses<'a>>,
    pub(super) request_state: Option<&'a str>,
    /// The task that it becomes.
    pub(super) task: Option<&'a TaskRequest>,
}

/// Runs such a function as a task, or while the client waits.
pub(super) async fn perform_function(
    exchange: &Exchange,
    request: &RoutedRequest<'_>,
    call: FunctionCall<'_>,
) -> Result<OperationResult, RpcError> {
    let chosen_id = call.task.and_then(|task| task.id.clone());
    let mut tool_call = ToolCall {
        exchange: exchange.clone(),
        tool: call.engine_name,
        input: call.input,
        form: call.form,
        mode: call.task.map_or(Ok(CallMode::Ordinary), |task| exchange.generation.task_mode(task))?,
        ttl: call.task.map(|task| task.ttl).unwrap_or_default(),
        chosen: chosen_id.map(|id| exchange.chosen_key(id)).transpose()?,
        progress_token: request.progress_token.clone(),
        log_level: request.log_level,
        answers: HashMap::new(),
        task_id: None,
        idempotency: None,
    };
    tool_call.take_answers(call.request_state, call.input_responses).await?;
    tool_call.begin().await
}

/// Whether an ordinary call creates a task and waits for it.
fn ticket_waits(exchange: &Exchange, offered: &CatalogueTool) -> bool {
    exchange.receiver.tickets().is_some()
        && offered.declaration.task_support() != TaskSupport::Forbidden
        && !exchange.receiver.engine.asks_before_task(&offered.name)
}

/// A call whose tool and arguments have been checked.
struct ToolCall {
    exchange: Exchange,
    tool: Arc<str>,
    input: Json,
    form: ResultForm,
    mode: CallMode,
    ttl: Ttl,
    /// The task under the ID that the requestor chose.
    chosen: Option<TaskKey>,
    progress_token: Option<RequestId>,
    log_level: Option<LogLevel>,
    /// Answers to questions of earlier rounds, by question key.
    answers: HashMap<String, Json>,
    /// The ID that an earlier round has chosen for the task.
    task_id: Option<TaskId>,
    idempotency: Option<Box<IdempotencyKey>>,
}

impl ToolCall {
    /// Takes the answers of earlier rounds from the sealed state, and those of this round.
    async fn take_answers(
        &mut self,
        request_state: Option<&str>,
        input_responses: Option<&InputResponses<'_>>,
    ) -> Result<(), RpcError> {
        let receiver = &self.exchange.receiver;
        if let Some(text) = request_state {
            let now = receiver.engine.now().await.map_err(|error| refusal::of_engine(&error))?;
            let state = receiver.seal.open_state(&self.binding(), text, now).ok_or_else(words::no_such_state)?;
            (self.answers, self.task_id) = (state.answers, Some(state.task_id));
        }
        if let Some(responses) = input_responses {
            for (key, body) in responses.iter() {
                self.answers.entry(key.to_owned()).or_insert_with(|| Json::from_text(body.get()));
            }
        }
        Ok(())
    }

    /// Creates a task and waits for it, for a client that takes no task.
    async fn wait(self, rules: &CallRules, relay: Option<RelayedCall>) -> Result<OperationResult, RpcError> {
        let retention = self.exchange.receiver.engine.retention(&self.tool);
        let retention = self.retention(retention.map_err(|error| refusal::of_engine(&error))?);
        let Self { exchange, tool, input, progress_token, log_level, answers, task_id, idempotency, .. } = self;
        let waiting = WaitingCall {
            exchange: exchange.clone(),
            tool: Arc::clone(&tool),
            input,
            retention,
            token: progress_token,
            log_level,
            rules: rules.clone(),
            idempotency,
            relay,
        };
        let place = waiting.place(task_id).await?;
        if exchange.session.is_none() && waiting.token.is_none() && log_level.is_none() {
            return Ok(OperationResult::Ready(waiting.run(place, answers, None).await?));
        }
        Ok(OperationResult::Work(StreamWork {
            exchange,
            task: Some(place.id().clone()),
            call: Some(CallWait::Patience),
            tool: Some(tool),
            run: Box::new(move |stream| {
                Box::pin(async move { Ok(waiting.run(place, answers, Some(stream)).await?.into()) })
            }),
        }))
    }

    /// Runs it at once if nothing can precede the response, else on a stream.
    async fn begin(self) -> Result<OperationResult, RpcError> {
        let is_ordinary = self.mode == CallMode::Ordinary;
        let sends_notifications = is_ordinary && (self.progress_token.is_some() || self.log_level.is_some());
        if self.exchange.session.is_none() && !sends_notifications {
            let response = self.run(None).await?.response;
            return Ok(OperationResult::Ready(response.unwrap_or_default()));
        }
        let task = self.chosen.as_ref().map(|key| key.id.clone());
        Ok(OperationResult::Work(StreamWork {
            exchange: self.exchange.clone(),
            call: task.is_some().then_some(CallWait::UntilEnd),
            task,
            tool: Some(Arc::clone(&self.tool)),
            run: Box::new(move |stream| Box::pin(self.run(Some(stream)))),
        }))
    }

    fn binding(&self) -> CallBinding<'_> {
        CallBinding { owner: &self.exchange.owner, tool: &self.tool, arguments: self.input.as_str() }
    }

    async fn run(self, stream: Option<Arc<MessageStream>>) -> Result<WorkResult, RpcError> {
        // Boxed, because the future of a creation would otherwise be as large as that of an ordinary call.
        match self.mode {
            CallMode::Ordinary => Box::pin(self.run_now(stream)).await,
            CallMode::Task | CallMode::TaskOrResult | CallMode::TaskThenResult => self.create_task(stream).await,
        }
    }

    async fn engine_call(
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

    /// Creates the task, after the tool has asked what it wants to know before.
    async fn create_task(mut self, stream: Option<Arc<MessageStream>>) -> Result<WorkResult, RpcError> {
        let failed = |error: EngineError| refusal::of_engine(&error);
        let mut input = self.input.clone();
        // Before anything is asked or admitted: a client that repeats its request learns that its task exists.
        if let Some(chosen) = &self.chosen
            && self.exchange.receiver.engine.read(chosen).await.is_ok()
        {
            return Err(words::task_id_exists(chosen.id.shown()));
        }
        if self.exchange.receiver.engine.asks_before_task(&self.tool) {
            // If an earlier request under the same key has created the task, the client is not asked again.
            if let Some(request) = &self.idempotency
                && let Some(found) =
                    self.exchange.receiver.engine.find_created(&self.exchange.owner, request).await.map_err(failed)?
            {
                return self.created_earlier(found.task).await;
            }
            let call = self.engine_call(stream.clone(), None).await?;
            let receiver = &self.exchange.receiver;
            let asking = Box::pin(receiver.engine.before_task(&self.tool, input, call));
            let asked = until_stop(receiver, asking).await?;
            input = match asked.map_err(failed)? {
                Ok(input) => input,
                Err(end) => return self.response_to(end).await,
            };
        }
        let exchange = &self.exchange;
        let receiver = &exchange.receiver;
        let usual = receiver.engine.retention(&self.tool).map_err(failed)?;
        let taken_back = exchange.session.as_ref().map(|session| session.make_uncancellable(&exchange.id));
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
                    words::task_id_exists(chosen.id.shown())
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
            return self.created_earlier(task).await;
        }
        let last = log.map(|log| LastNotified {
            progress_token: self.progress_token,
            log: Some(log),
            ..LastNotified::of(&task, exchange.generation)
        });
        let last = match (&exchange.session, last, stream, taken_back, self.mode) {
            (Some(session), Some(last), Some(stream), Some(taken_back), CallMode::TaskThenResult) => {
                let waiting = exchange.clone();
                return Box::pin(call_answer::announce_and_wait(waiting, session, last, &stream, taken_back)).await;
            }
            (_, last, ..) => last,
        };
        if self.mode == CallMode::TaskOrResult
            && let Some(answer) = call_answer::soon(exchange, &task.key).await
        {
            return Ok(answer?.into());
        }
        let view = TaskView { poll_interval_ms: receiver.options.poll_interval_ms, ..TaskView::of(&task) };
        let catalogue = receiver.catalogue.current();
        let sentence = catalogue.tools.find(&self.tool).and_then(|offered| offered.immediate_response.as_deref());
        let response = exchange.generation.created(&exchange.reply_to(), &view, sentence);
        Ok(WorkResult { response: Some(response), created: last })
    }

    /// The response to a repeated request: the task that the first request created, as it is now.
    async fn created_earlier(&self, task: Arc<Task>) -> Result<WorkResult, RpcError> {
        let (exchange, receiver) = (&self.exchange, &self.exchange.receiver);
        // If the task was deleted meanwhile, the response shows it as it was found.
        let found = receiver.engine.read(&task.key).await.unwrap_or(Snapshot { task, progress: None });
        let task = LoadedTask::of(receiver, found).await.map_err(|error| refusal::of_engine(&error))?;
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
    fn retention(&self, usual: Retention) -> Retention {
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
            if self.exchange.is_known { retention } else { retention.at_most(options.anonymous_kept_ms_max) };
        match (self.ttl, retention) {
            (Ttl::UsualAfterEnd, Retention::FromCreation(ms)) => Retention::FromEnd(ms),
            _ => retention,
        }
    }

    /// Runs the tool while the client waits.
    async fn run_now(mut self, stream: Option<Arc<MessageStream>>) -> Result<WorkResult, RpcError> {
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
        self.response_to(end.map_err(|error| refusal::of_engine(&error))?).await
    }

    async fn response_to(&self, end: CallEnd) -> Result<WorkResult, RpcError> {
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
async fn until_stop<T>(receiver: &ReceiverInner, work: impl Future<Output = T>) -> Result<T, RpcError> {
    tokio::select! {
        biased;
        end = work => Ok(end),
        () = receiver.response_time_over() => Err(refusal::call_stopped()),
    }
}
