//! `tools/call`: as a task or as an ordinary call, decided by the tool's declaration and the client's capability.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use longhaul_engine::{Call, CallEnd, EngineError, LogLine, NewCall, OpenQuestion, Requestor};
use longhaul_store::StoreError;
use longhaul_task::{Json, Outcome, Owner, Progress, QuestionKind, Refused, TaskId, TaskKey};
use longhaul_wire::ext2026::tools_call::{self, InputRequest};
use longhaul_wire::ext2026::{Accepted, Capabilities, Capability, Headers, ORIGIN, check_mirrored, logging, progress};
use longhaul_wire::jsonrpc::{self, RequestId, RpcError};
use longhaul_wire::{LogLevel, View, question};
use serde_json::value::RawValue;
use tokio::sync::{mpsc, watch};
use tokio_util::task::AbortOnDropHandle;

use crate::receiver::Shared;
use crate::seal::{CallOf, State};
use crate::{Caller, Messages, Reply, audit, log, refusal};

/// One text for all tasks that are made here.
static SHARED_ORIGIN: LazyLock<Arc<str>> = LazyLock::new(|| ORIGIN.into());

/// Log lines that wait for a client; more are lost.
const UNHEARD_LINES_MAX: usize = 64;

pub(super) async fn receive(
    shared: &Arc<Shared>,
    caller: &Caller,
    id: &RequestId,
    accepted: &Accepted<'_>,
    headers: Option<&(dyn Headers + Sync)>,
) -> Result<Reply, RpcError> {
    let call = tools_call::Call::parse(&accepted.params)?;
    let offered = shared.catalogue.find(&call.name).ok_or_else(|| tools_call::no_such_tool(&call.name))?;
    if let Some(headers) = headers {
        check_mirrored(headers, &offered.declaration, call.arguments)?;
    }
    let capabilities = accepted.meta.capabilities;
    let takes_tasks = capabilities.has(Capability::Tasks);
    let as_task = offered.as_task(takes_tasks).ok_or_else(|| Capability::Tasks.missing())?;
    if let Err(wrong) = offered.declaration.check_arguments(call.arguments) {
        return Ok(Reply::ok(tools_call::complete(id, &wrong.to_result(), &shared.server)));
    }
    let mut round = Round {
        shared: Arc::clone(shared),
        owner: caller.owner.clone(),
        is_known: caller.is_known,
        id: id.clone(),
        tool: Arc::clone(&offered.name),
        input: Json::from_text(call.arguments.get()),
        capabilities,
        answers: HashMap::new(),
        task_id: None,
        log: None,
    };
    round.bring_answers(&call).await?;
    if as_task {
        return round.create_task().await.map(Reply::ok);
    }
    let (token, log_level) = (accepted.meta.progress_token.clone(), accepted.meta.log_level);
    if token.is_none() && log_level.is_none() {
        return Ok(Reply::ok(round.run(None).await?));
    }
    let (sender, progress) = watch::channel(None);
    let (log, lines) = mpsc::channel(UNHEARD_LINES_MAX);
    round.log = log_level.map(|level| (level, log));
    let progresses = token.is_some().then_some(sender);
    let (id, owner, tool) = (id.clone(), round.owner.clone(), Arc::clone(&round.tool));
    // Beside its stream: a client that is slow to read does not hold it up. One that hangs up ends it.
    let call = AbortOnDropHandle::new(shared.tracker.spawn(round.run(progresses)));
    let call = Box::pin(async move {
        let end = call.await.unwrap_or_else(|_| Err(RpcError::internal("The call was given up.")));
        end.unwrap_or_else(|error| {
            audit::call_failed(ORIGIN, &owner, &tool, &error);
            jsonrpc::error(Some(&id), &error)
        })
    });
    Ok(Reply::Stream(Box::new(CallStream { token, progress, lines, call: Some(call), said: f64::NEG_INFINITY })))
}

/// One round of a call: the call itself, or the client calling again with answers.
struct Round {
    shared: Arc<Shared>,
    owner: Owner,
    is_known: bool,
    id: RequestId,
    tool: Arc<str>,
    input: Json,
    capabilities: Capabilities,
    answers: HashMap<String, Json>,
    /// What the task is called that this becomes, once a round before this one has settled that.
    task_id: Option<TaskId>,
    /// From which severity on its client hears log lines, and where they go.
    log: Option<(LogLevel, mpsc::Sender<String>)>,
}

impl Round {
    /// Takes the answers of earlier rounds out of the sealed state, and those of this round beside them.
    async fn bring_answers(&mut self, call: &tools_call::Call<'_>) -> Result<(), RpcError> {
        if let Some(text) = &call.request_state {
            let now = self.shared.engine.now().await.map_err(|error| refusal::of_engine(&error))?;
            let opened = self.shared.seal.open_state(&self.call_of(), text, now);
            let forged = || RpcError::invalid_params("`requestState` is not one that this call was given, or too old");
            let state = opened.ok_or_else(forged)?;
            (self.answers, self.task_id) = (state.answered, Some(state.task_id));
        }
        if let Some(responses) = &call.input_responses {
            for (key, body) in responses.iter() {
                self.answers.entry(key.to_owned()).or_insert_with(|| Json::from_text(body.get()));
            }
        }
        Ok(())
    }

    fn call_of(&self) -> CallOf<'_> {
        CallOf { owner: &self.owner, tool: &self.tool, arguments: self.input.as_str() }
    }

    fn call(&mut self, progress: Option<watch::Sender<Option<Progress>>>) -> Call {
        let requestor = Arc::new(Client { capabilities: self.capabilities, log: self.log.take() });
        Call { answers: std::mem::take(&mut self.answers), requestor, progress }
    }

    /// Makes a task, once the tool has heard what it wants to know before there is one.
    async fn create_task(mut self) -> Result<String, RpcError> {
        let call = self.call(None);
        let before = self.shared.engine.before_task(&self.tool, self.input.clone(), call).await;
        let input = match before.map_err(|error| refusal::of_engine(&error))? {
            Ok(input) => input,
            Err(end) => return self.end(end).await,
        };
        let usual = self.shared.engine.retention(&self.tool).map_err(|error| refusal::of_engine(&error))?;
        let new = NewCall {
            owner: self.owner.clone(),
            tool: Arc::clone(&self.tool),
            input,
            origin: Arc::clone(&SHARED_ORIGIN),
            id: self.task_id.clone(),
            retention: Some(self.shared.retention(usual, self.is_known)),
        };
        let task = match (self.shared.engine.create(new).await, self.task_id) {
            // The answer to this very round was lost on its way.
            (Err(EngineError::Store(StoreError::Refused(Refused::Duplicate))), Some(id)) => {
                let made = self.shared.engine.read(&TaskKey { owner: self.owner, id }).await;
                made.map_err(|error| refusal::of_engine(&error))?.task
            }
            (created, _) => created.map_err(|error| refusal::of_engine(&error))?,
        };
        let view = View { poll_interval_ms: self.shared.options.poll_interval_ms, ..View::of(&task, task.created_at) };
        Ok(tools_call::created(&self.id, &view, &self.shared.server))
    }

    /// Runs the tool while the client waits.
    async fn run(mut self, progress: Option<watch::Sender<Option<Progress>>>) -> Result<String, RpcError> {
        let call = self.call(progress);
        let end = self.shared.engine.call(&self.tool, self.input.clone(), call).await;
        self.end(end.map_err(|error| refusal::of_engine(&error))?).await
    }

    async fn end(&self, end: CallEnd) -> Result<String, RpcError> {
        match end {
            CallEnd::Done(Outcome::Answer { body, .. }) => {
                Ok(tools_call::complete(&self.id, &body, &self.shared.server))
            }
            CallEnd::Done(Outcome::Refusal(fault)) => Err(RpcError::from(&fault)),
            CallEnd::Done(Outcome::Cancelled) => Err(RpcError::internal("The call was cancelled.")),
            CallEnd::Stopped(stop) => Err(refusal::of_stop(&stop)),
            CallEnd::Asks { questions, answered } => {
                let now = self.shared.engine.now().await.map_err(|error| refusal::of_engine(&error))?;
                let chance = &**self.shared.engine.chance();
                let task_id = self.task_id.clone().unwrap_or_else(|| TaskId::mint(now, chance.bits()));
                let state = State::new(answered, task_id, now);
                let state = self.shared.seal.close_state(&self.call_of(), &state, chance);
                let requests: Vec<InputRequest> = questions.into_iter().map(asked).collect();
                Ok(tools_call::input_required(&self.id, &requests, state.as_deref(), &self.shared.server))
            }
        }
    }
}

fn asked(question: OpenQuestion) -> InputRequest {
    InputRequest { key: question.key, kind: question.kind, params: question.params }
}

/// The client of one call, as it described itself.
struct Client {
    capabilities: Capabilities,
    log: Option<(LogLevel, mpsc::Sender<String>)>,
}

impl Requestor for Client {
    fn can_answer(&self, kind: QuestionKind, params: &Json) -> bool {
        self.capabilities.has(Capability::to_answer(kind, params))
    }

    fn fits(&self, kind: QuestionKind, params: &Json, answer: &Json) -> Result<(), String> {
        let answer: &RawValue = serde_json::from_str(answer.as_str()).map_err(|error| error.to_string())?;
        question::check_parts(None, kind, params, answer).map_err(|wrong| wrong.to_string())
    }

    fn log(&self, line: &LogLine) {
        let message = log::message(line);
        if let Some((level, lines)) = &self.log
            && logging::is_wanted(message, Some(*level))
        {
            // A client that is too slow misses it.
            let _ = lines.try_send(logging::notification(message));
        }
    }
}

/// A call whose client wants to hear of its progress, or what it logs.
struct CallStream {
    token: Option<RequestId>,
    progress: watch::Receiver<Option<Progress>>,
    lines: mpsc::Receiver<String>,
    call: Option<BoxFuture<'static, String>>,
    /// How far the client was last told the call is: the protocol lets it only grow.
    said: f64,
}

impl CallStream {
    /// What the client has not heard yet.
    fn unsaid(&mut self) -> Option<String> {
        self.lines.try_recv().ok().or_else(|| self.unsaid_progress())
    }

    fn unsaid_progress(&mut self) -> Option<String> {
        let progress = self.progress.borrow_and_update();
        let progress = progress.as_ref().filter(|progress| progress.done > self.said)?;
        self.said = progress.done;
        Some(progress::notification(self.token.as_ref()?, progress))
    }
}

#[async_trait]
impl Messages for CallStream {
    async fn next(&mut self) -> Option<String> {
        loop {
            let call = self.call.as_mut()?;
            let ended = tokio::select! {
                biased;
                Some(line) = self.lines.recv() => return Some(line),
                Ok(()) = self.progress.changed() => None,
                response = call => Some(response),
            };
            // What was said before the end goes out before the end.
            match (self.unsaid(), ended) {
                (None, None) => {}
                (Some(said), None) => return Some(said),
                (Some(said), Some(response)) => {
                    self.call = Some(Box::pin(std::future::ready(response)));
                    return Some(said);
                }
                (None, Some(response)) => {
                    self.call = None;
                    return Some(response);
                }
            }
        }
    }
}
