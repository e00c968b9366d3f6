//! `tools/call`: as a task or as an ordinary call, decided by the tool's declaration and the client's capability.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use longhaul_engine::{Call, CallEnd, NewCall, OpenQuestion, Requestor};
use longhaul_task::{Json, Outcome, Owner, Progress, QuestionKind};
use longhaul_wire::View;
use longhaul_wire::ext2026::tools_call::{self, InputRequest};
use longhaul_wire::ext2026::{Accepted, Capabilities, Capability, Headers, ORIGIN, check_mirrored, progress};
use longhaul_wire::jsonrpc::{self, RequestId, RpcError};
use longhaul_wire::question;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use crate::receiver::Shared;
use crate::seal::CallOf;
use crate::{Messages, Reply, refusal};

/// One text for all tasks that are made here.
static SHARED_ORIGIN: LazyLock<Arc<str>> = LazyLock::new(|| ORIGIN.into());

pub(super) async fn receive(
    shared: &Arc<Shared>,
    owner: &Owner,
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
        owner: owner.clone(),
        id: id.clone(),
        tool: Arc::clone(&offered.name),
        input: Json::from_text(call.arguments.get()),
        capabilities,
        answers: HashMap::new(),
    };
    round.bring_answers(&call).await?;
    if as_task {
        return round.create_task().await.map(Reply::ok);
    }
    Ok(match accepted.meta.progress_token.clone() {
        None => Reply::ok(round.run(None).await?),
        Some(token) => {
            let (sender, progress) = mpsc::unbounded_channel();
            let call = Box::pin(async move {
                let id = round.id.clone();
                round.run(Some(sender)).await.unwrap_or_else(|error| jsonrpc::error(Some(&id), &error))
            });
            Reply::Stream(Box::new(CallStream { token, progress, call: Some(call), said: f64::NEG_INFINITY }))
        }
    })
}

/// One round of a call: the call itself, or the client calling again with answers.
struct Round {
    shared: Arc<Shared>,
    owner: Owner,
    id: RequestId,
    tool: Arc<str>,
    input: Json,
    capabilities: Capabilities,
    answers: HashMap<String, Json>,
}

impl Round {
    /// Takes the answers of earlier rounds out of the sealed state, and those of this round beside them.
    async fn bring_answers(&mut self, call: &tools_call::Call<'_>) -> Result<(), RpcError> {
        if let Some(text) = &call.request_state {
            let now = self.shared.engine.now().await.map_err(|error| refusal::of_engine(&error))?;
            let opened = self.shared.seal.open(&self.call_of(), text, now);
            let forged = || RpcError::invalid_params("`requestState` is not one that this call was given, or too old");
            self.answers = opened.ok_or_else(forged)?;
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

    fn call(&mut self, progress: Option<mpsc::UnboundedSender<Progress>>) -> Call {
        let requestor = Arc::new(Client { capabilities: self.capabilities });
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
        let new = NewCall {
            owner: self.owner.clone(),
            tool: Arc::clone(&self.tool),
            input,
            origin: Arc::clone(&SHARED_ORIGIN),
            id: None,
        };
        let task = self.shared.engine.create(new).await.map_err(|error| refusal::of_engine(&error))?;
        let view = View { poll_interval_ms: self.shared.options.poll_interval_ms, ..View::of(&task, task.created_at) };
        Ok(tools_call::created(&self.id, &view, &self.shared.server))
    }

    /// Runs the tool while the client waits.
    async fn run(mut self, progress: Option<mpsc::UnboundedSender<Progress>>) -> Result<String, RpcError> {
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
                let state = self.shared.seal.close(&self.call_of(), answered, now, &**self.shared.engine.chance());
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
}

impl Requestor for Client {
    fn can_answer(&self, kind: QuestionKind, params: &Json) -> bool {
        self.capabilities.has(Capability::to_answer(kind, params))
    }

    fn fits(&self, kind: QuestionKind, params: &Json, answer: &Json) -> Result<(), String> {
        let answer: &RawValue = serde_json::from_str(answer.as_str()).map_err(|error| error.to_string())?;
        question::check_parts("", kind, params, answer).map_err(|wrong| wrong.to_string())
    }
}

/// A call whose client wants to hear of its progress.
struct CallStream {
    token: RequestId,
    progress: mpsc::UnboundedReceiver<Progress>,
    call: Option<BoxFuture<'static, String>>,
    /// How far the client was last told the call is: the protocol lets it only grow.
    said: f64,
}

#[async_trait]
impl Messages for CallStream {
    async fn next(&mut self) -> Option<String> {
        let call = self.call.as_mut()?;
        loop {
            tokio::select! {
                biased;
                Some(progress) = self.progress.recv() => {
                    if progress.done > self.said {
                        self.said = progress.done;
                        return Some(progress::notification(&self.token, &progress));
                    }
                }
                response = &mut *call => {
                    // What was said before the end goes out before the end.
                    if let Ok(progress) = self.progress.try_recv()
                        && progress.done > self.said
                    {
                        self.said = progress.done;
                        self.call = Some(Box::pin(std::future::ready(response)));
                        return Some(progress::notification(&self.token, &progress));
                    }
                    self.call = None;
                    return Some(response);
                }
            }
        }
    }
}
