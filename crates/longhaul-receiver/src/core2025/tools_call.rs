//! `tools/call`: as a task, if the call asks for one, or while its client waits. Either way the client is asked on the
//! stream of the call what the tool wants to know before there is an answer.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use longhaul_engine::{Call, CallEnd, NewCall, Stop};
use longhaul_store::Snapshot;
use longhaul_task::{Json, Outcome, Progress, Retention, TaskKey};
use longhaul_wire::View;
use longhaul_wire::core2025::{Marker, ORIGIN, Ttl, progress, tools_call};
use longhaul_wire::jsonrpc::{RequestId, RpcError};
use longhaul_wire::refusal as words;
use tokio::sync::watch;

use super::channel::Channel;
use super::follow::Told;
use super::questions::Client;
use super::session::Session;
use crate::refusal;

/// One text for all tasks that are made here.
static SHARED_ORIGIN: LazyLock<Arc<str>> = LazyLock::new(|| ORIGIN.into());

/// The shortest time that a task is kept for, whatever is asked for: its result could not be fetched otherwise.
const TTL_MS_MIN: u64 = 1_000;

/// A call that will be carried out.
pub(super) struct Work {
    session: Arc<Session>,
    id: RequestId,
    tool: Arc<str>,
    input: Json,
    marker: Marker,
    as_task: bool,
    token: Option<RequestId>,
}

/// What a call came to.
pub(super) struct Done {
    pub(super) answer: String,
    /// The task that it became, to be followed once its client knows of it.
    pub(super) task: Option<(TaskKey, Told)>,
}

/// A call, or what it is answered with at once.
pub(super) enum Begun {
    Answered(String),
    Work(Work),
}

/// Looks whether a call can be carried out.
pub(super) fn begin(
    session: &Arc<Session>,
    id: &RequestId,
    call: &tools_call::Call<'_>,
    token: Option<RequestId>,
) -> Result<Begun, RpcError> {
    let revision = session.peer.revision;
    let offered = session.shared.catalogue.find(&call.name).ok_or_else(|| words::no_such_tool(&call.name))?;
    let as_task = call.becomes_a_task(&offered.declaration, revision)?;
    if let Err(wrong) = offered.declaration.check_arguments(call.arguments) {
        return Ok(Begun::Answered(tools_call::complete(id, &wrong.to_result(), revision)));
    }
    Ok(Begun::Work(Work {
        session: Arc::clone(session),
        id: id.clone(),
        tool: Arc::clone(&offered.name),
        input: Json::from_text(call.arguments.get()),
        marker: call.marker,
        as_task,
        token,
    }))
}

impl Work {
    pub(super) async fn run(self, channel: &Arc<Channel>) -> Result<Done, RpcError> {
        if self.as_task {
            return self.create(channel).await;
        }
        let (sender, said) = watch::channel(None);
        let progress = self.token.is_some().then_some(sender);
        let call = self.call(channel, progress);
        let end = self.session.shared.engine.call(&self.tool, self.input.clone(), call);
        let end = match &self.token {
            None => end.await,
            Some(token) => telling(token, said, channel, end).await,
        };
        self.end(end.map_err(|error| refusal::of_engine(&error))?)
    }

    fn call(&self, channel: &Arc<Channel>, progress: Option<watch::Sender<Option<Progress>>>) -> Call {
        let requestor = Client { session: Arc::clone(&self.session), channel: Arc::clone(channel) };
        Call { answers: HashMap::new(), requestor: Arc::new(requestor), progress }
    }

    /// Makes a task, once the tool has heard what it wants to know before there is one.
    async fn create(self, channel: &Arc<Channel>) -> Result<Done, RpcError> {
        let shared = &self.session.shared;
        let failed = |error| refusal::of_engine(&error);
        let call = self.call(channel, None);
        let input = match shared.engine.before_task(&self.tool, self.input.clone(), call).await.map_err(failed)? {
            Ok(input) => input,
            Err(end) => return self.end(end),
        };
        let usual = shared.engine.retention(&self.tool).map_err(failed)?;
        self.session.commit(&self.id);
        let new = NewCall {
            owner: self.session.owner.clone(),
            tool: Arc::clone(&self.tool),
            input,
            origin: Arc::clone(&SHARED_ORIGIN),
            id: None,
            retention: Some(shared.retention(self.retention(usual), self.session.is_known)),
        };
        let (task, log) = shared.engine.create_and_listen(new).await.map_err(failed)?;
        let view = View { poll_interval_ms: shared.options.poll_interval_ms, ..View::of(&task, task.created_at) };
        let sentence = shared.catalogue.find(&self.tool).and_then(|offered| offered.immediate_response.as_deref());
        let answer = tools_call::created(&self.id, &view, sentence);
        let mut told = Told::of(&Snapshot { task: Arc::clone(&task), progress: None });
        told.token = self.token;
        told.log = Some(log);
        Ok(Done { answer, task: Some((task.key.clone(), told)) })
    }

    /// What the requestor wants, as far as the tool and the server let it.
    fn retention(&self, usual: Retention) -> Retention {
        let Marker::Core2025 { ttl: Ttl::Ms(wanted) } = self.marker else { return usual };
        let wanted = wanted.max(TTL_MS_MIN);
        let most = match usual {
            Retention::FromCreation(ms) => ms,
            Retention::FromEnd(_) | Retention::Unlimited => self.session.shared.options.ttl_ms_max,
        };
        Retention::FromCreation(wanted.min(most))
    }

    fn end(&self, end: CallEnd) -> Result<Done, RpcError> {
        match end {
            CallEnd::Done(Outcome::Answer { body, .. }) => {
                let answer = tools_call::complete(&self.id, &body, self.session.peer.revision);
                Ok(Done { answer, task: None })
            }
            CallEnd::Done(Outcome::Refusal(fault)) => Err(RpcError::from(&fault)),
            CallEnd::Done(Outcome::Cancelled) => Err(RpcError::internal("The call was cancelled.")),
            CallEnd::Stopped(stop) => Err(stopped(&stop)),
            // Its questions were put to the client while it ran.
            CallEnd::Asks { .. } => Err(RpcError::internal("The call waits for nobody.")),
        }
    }
}

fn stopped(stop: &Stop) -> RpcError {
    RpcError::from(&stop.fault())
}

/// Carries a call to its end and tells its client how far it is; what was said before the end goes out before it.
async fn telling<T>(
    token: &RequestId,
    mut said: watch::Receiver<Option<Progress>>,
    channel: &Channel,
    end: impl Future<Output = T>,
) -> T {
    tokio::pin!(end);
    // The protocol lets it only grow.
    let mut told = f64::NEG_INFINITY;
    loop {
        let ended = tokio::select! {
            biased;
            Ok(()) = said.changed() => None,
            ended = &mut end => Some(ended),
        };
        let news = said.borrow_and_update().clone().filter(|progress| progress.done > told);
        if let Some(progress) = news {
            told = progress.done;
            channel.say(progress::notification(token, &progress, None)).await;
        }
        if let Some(ended) = ended {
            return ended;
        }
    }
}
