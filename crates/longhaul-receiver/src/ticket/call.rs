//! A call of a client without tasks: a durable task, a wait, and then its result or a ticket.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use longhaul_engine::{EngineError, NewCall};
use longhaul_store::IdempotencyKey;
use longhaul_task::{Answer, Json, Phase, QuestionKey, Retention, Task, TaskId, TaskKey};
use longhaul_wire::call_result::{self, InputRequest};
use longhaul_wire::jsonrpc::{RequestId, RpcError};
use longhaul_wire::{LogLevel, ticket};

use super::wait::TaskWait;
use super::{answer, names};
use crate::exchange::Exchange;
use crate::loaded_task::LoadedTask;
use crate::operation::{CallWait, OperationResult, StreamWork};
use crate::seal::{CallBinding, CallState};
use crate::stream::MessageStream;
use crate::{idempotency, refusal};

/// The time within which the same call joins the task of an earlier one.
const JOIN_MS_MAX: u64 = 5 * 60 * 1_000;

/// What a tool says about calls that are answered by their task's result.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallRules {
    /// The time within which the result of a task answers the call, for clients that take tasks.
    pub answers_within: Option<Duration>,
    /// Whether the task of a call ends if its client, which takes no tasks, gives up, or disconnects and has not resumed its
    /// stream when its ticket is due.
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
    pub(crate) token: Option<RequestId>,
    pub(crate) log_level: Option<LogLevel>,
    pub(crate) rules: CallRules,
    /// The client's own, or that of the process that passes the call on.
    pub(crate) idempotency: Option<Box<IdempotencyKey>>,
    pub(crate) relay: Option<RelayedCall>,
}

/// What a process that passes a call on says about it. The process has added the idempotency key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RelayedCall {
    /// When the process first sent it.
    pub(crate) sent_ms: u64,
    /// Whether it was sent to an earlier server, too.
    pub(crate) is_repeated: bool,
}

impl RelayedCall {
    /// Whether a task of the same call, which has ended, may be the one that this call has joined or created.
    fn may_have_waited_for(self, task: &Task) -> bool {
        let Phase::Settled { at, .. } = &task.phase else { return false };
        self.is_repeated && at.as_ms() >= self.sent_ms
    }
}

/// The task that a call waits for.
pub(crate) enum AwaitedTask {
    /// It exists.
    Found(TaskKey),
    /// It is to be created, under this key if there is one.
    New(TaskId, Option<Box<IdempotencyKey>>),
}

impl AwaitedTask {
    pub(crate) fn id(&self) -> &TaskId {
        match self {
            Self::Found(key) => &key.id,
            Self::New(id, _) => id,
        }
    }
}

impl WaitingCall {
    /// Finds the task that an earlier round or the same call has created. `asked` is the task of an earlier round.
    pub(crate) async fn awaited_task(&self, asked: Option<TaskId>) -> Result<AwaitedTask, RpcError> {
        if let Some(id) = asked {
            return Ok(AwaitedTask::Found(self.exchange.key(id)));
        }
        self.find().await.map_err(|error| refusal::of_engine(&error))
    }

    async fn find(&self) -> Result<AwaitedTask, EngineError> {
        let (engine, owner) = (&self.exchange.receiver.engine, &self.exchange.owner);
        let now = engine.now().await?;
        let new = |idempotency| AwaitedTask::New(TaskId::mint(now, engine.random().bits()), idempotency);
        if let Some(own) = &self.idempotency {
            if let Some(found) = engine.find_created(owner, own).await? {
                return Ok(AwaitedTask::Found(found.task.key.clone()));
            }
            if self.relay.is_none() {
                return Ok(new(Some(own.clone())));
            }
        }
        let (mut free_key, mut has_ended) = (None, false);
        for period in self.join_periods(now.as_ms()) {
            let same = idempotency::of_same_call(&self.exchange, &self.tool, self.input.as_str(), period);
            // A client that cannot be told from others joins no task.
            let Some(same) = same else { break };
            match engine.find_created(owner, &same).await? {
                Some(found)
                    if !found.task.is_settled()
                        || self.relay.is_some_and(|relay| relay.may_have_waited_for(&found.task)) =>
                {
                    return Ok(AwaitedTask::Found(found.task.key.clone()));
                }
                Some(_) => has_ended = true,
                None => free_key = free_key.or(Some(Box::new(same))),
            }
        }
        // After one that has ended, this call is a new one, which cannot be found by a third.
        Ok(new(free_key.filter(|_| !has_ended).or_else(|| self.idempotency.clone())))
    }

    /// The periods under whose keys a task of the same call is looked for, the current one first.
    fn join_periods(&self, now_ms: u64) -> Vec<u64> {
        // A task that ends with its client is not shared with others.
        if !self.rules.joins || self.rules.cancels_abandoned {
            return Vec::new();
        }
        // A task of the last minutes is under the key of this period or of the one before.
        let period = now_ms / JOIN_MS_MAX;
        let mut periods = vec![period, period.saturating_sub(1)];
        if let Some(relay) = self.relay.filter(|relay| relay.is_repeated) {
            let sent = relay.sent_ms / JOIN_MS_MAX;
            periods.extend([sent.saturating_add(1), sent, sent.saturating_sub(1)]);
        }
        let mut seen = HashSet::new();
        periods.retain(|period| seen.insert(*period));
        periods
    }

    /// Creates the task if there is none, gives it the answers, and waits for it.
    pub(crate) async fn run(
        self,
        awaited: AwaitedTask,
        answers: HashMap<String, Json>,
        stream: Option<Arc<MessageStream>>,
    ) -> Result<String, RpcError> {
        let failed = |error: EngineError| refusal::of_engine(&error);
        let receiver = &self.exchange.receiver;
        let (key, log) = match awaited {
            AwaitedTask::Found(key) => {
                self.give(&key, answers).await?;
                (key, None)
            }
            AwaitedTask::New(id, idempotency) => {
                let new = NewCall {
                    owner: self.exchange.owner.clone(),
                    tool: Arc::clone(&self.tool),
                    input: self.input.clone(),
                    origin: receiver.origin(self.exchange.generation),
                    id: Some(id),
                    retention: Some(self.retention),
                    idempotency,
                };
                let (created, log) = receiver.engine.create_and_listen(new).await.map_err(failed)?;
                (created.task.key.clone(), Some(log))
            }
        };
        let (exchange, token, cancels_abandoned) =
            (self.exchange.clone(), self.token.clone(), self.rules.cancels_abandoned);
        self.answer(TaskWait { exchange, key, token, stream, log, log_level: self.log_level, cancels_abandoned }).await
    }

    /// Gives the task of an earlier round the answers of this one. Answers to questions that are not open have been taken.
    async fn give(&self, key: &TaskKey, answers: HashMap<String, Json>) -> Result<(), RpcError> {
        let engine = &self.exchange.receiver.engine;
        let failed = |error: EngineError| refusal::of_engine(&error);
        if answers.is_empty() {
            return Ok(());
        }
        let task = engine.read(key).await.map_err(failed)?.task;
        let open: Vec<QuestionKey> =
            task.phase.questions().into_iter().flatten().map(|open| open.key.clone()).collect();
        let answers = open.into_iter().filter_map(|question| {
            let body = answers.get(question.as_str())?.clone();
            Some((question, Answer::Given(body)))
        });
        let answers: Vec<(QuestionKey, Answer)> = answers.collect();
        answer::store(&self.exchange, &task, answers).await.map_err(failed)
    }

    /// The result of the task; or, if it asks and this client can be asked by the end of its call, its questions; or a
    /// ticket.
    async fn answer(&self, wait: TaskWait) -> Result<String, RpcError> {
        let exchange = &self.exchange;
        let patience = exchange.receiver.tickets().map(|tickets| tickets.patience).unwrap_or_default();
        let task = wait.run(patience).await?;
        match self.round(&task).await? {
            Some(round) => Ok(round),
            None => answer_of(exchange, &task),
        }
    }

    /// The questions of the task as the end of a round, for a stateless client that can answer all of them.
    async fn round(&self, task: &LoadedTask) -> Result<Option<String>, RpcError> {
        let exchange = &self.exchange;
        let task = &task.snapshot.task;
        let Some(questions) = task.phase.questions().filter(|_| exchange.session.is_none()) else { return Ok(None) };
        if !questions.iter().all(|asked| exchange.peer.can_answer(asked.kind, &asked.params)) {
            return Ok(None);
        }
        let receiver = &exchange.receiver;
        let now = receiver.engine.now().await.map_err(|error| refusal::of_engine(&error))?;
        let state = CallState::new(Vec::new(), task.key.id.clone(), now);
        let binding = CallBinding { owner: &exchange.owner, tool: &self.tool, arguments: self.input.as_str() };
        let state = receiver.seal.close_state(&binding, &state, &**receiver.engine.random());
        let requests = questions.iter().map(|asked| InputRequest {
            key: asked.key.as_str().into(),
            kind: asked.kind,
            params: asked.params.clone(),
        });
        let requests: Vec<InputRequest> = requests.collect();
        Ok(Some(call_result::input_required(&exchange.reply_to(), &requests, state.as_deref())))
    }
}

/// The result of a task, or a ticket.
fn answer_of(exchange: &Exchange, task: &LoadedTask) -> Result<String, RpcError> {
    let (to, view) = (exchange.reply_to(), task.view());
    match exchange.generation.answer(&to, &view) {
        Some(answer) => answer,
        None => Ok(call_result::complete(&to, &ticket::ticket(&view, &names(exchange)))),
    }
}

/// Continues the wait of a call whose stream was lost, perhaps with the process.
pub(crate) async fn resume(exchange: &Exchange, key: TaskKey) -> Result<OperationResult, RpcError> {
    let tool = exchange.look_up(&key).await?.snapshot.task.tool.clone();
    let catalogue = exchange.receiver.catalogue.current();
    let cancels_abandoned = catalogue.tools.find(&tool.name).is_some_and(|offered| offered.rules.cancels_abandoned);
    let waiting = exchange.clone();
    Ok(OperationResult::Work(StreamWork {
        exchange: exchange.clone(),
        task: Some(key.id.clone()),
        creation: None,
        call: Some(CallWait::Patience),
        tool: None,
        run: Box::new(move |stream| {
            let wait = TaskWait {
                exchange: waiting.clone(),
                key,
                token: None,
                stream: Some(stream),
                log: None,
                log_level: None,
                cancels_abandoned,
            };
            let patience = waiting.receiver.tickets().map(|tickets| tickets.patience).unwrap_or_default();
            Box::pin(async move { Ok(answer_of(&waiting, &wait.run(patience).await?)?.into()) })
        }),
    }))
}
