//! Questions to the client: requests of ours on a stream that it hears, and what comes back.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use longhaul_engine::audit::answered;
use longhaul_engine::{EngineError, LogLine, OpenQuestion, Requestor, Stop, not_answered};
use longhaul_store::StoreError;
use longhaul_task::{Json, Question, QuestionKey, QuestionKind, Task, TaskId, TaskKey};
use longhaul_wire::Cancelled;
use longhaul_wire::core2025::question::{self, Asking, Reply};
use longhaul_wire::core2025::{Related, logging, requestor as wire};
use longhaul_wire::jsonrpc::{RequestId, Response, RpcError};
use longhaul_wire::question::check_parts;
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::channel::Channel;
use super::requestor;
use super::session::Session;
use crate::{audit, log};

/// How often a question is asked again because the answer did not fit.
pub(super) const ASKED_MAX: usize = 3;

/// The first pause before an answer is stored again that could not be.
const STORE_PAUSE_MIN: Duration = Duration::from_millis(50);

/// The longest.
const STORE_PAUSE_MAX: Duration = Duration::from_secs(5);

/// For how long a client is asked to keep a task that it makes of a question.
const REMOTE_TASK_MS: u64 = 60 * 60 * 1_000;

/// What a client responded with.
pub(super) type Outcome = Result<Box<RawValue>, RpcError>;

/// A response that came.
#[derive(Debug)]
pub(super) struct Came {
    pub(super) outcome: Outcome,
    pub(super) receipt: Receipt,
}

/// Whoever sent a response is told that it was taken when this is dropped: after it was stored, if it is to be.
#[derive(Debug)]
pub(super) struct Receipt(#[expect(dead_code, reason = "it is dropped")] oneshot::Sender<()>);

/// Where a response goes.
pub(super) struct Answered {
    to: oneshot::Sender<Came>,
    is_stored: bool,
}

/// A request of ours before it goes out.
pub(super) struct Outgoing {
    pub(super) id: RequestId,
    /// Whether the client is told when it is taken back. What may become a task there is cancelled as a task.
    pub(super) tells: bool,
    /// Whether the response is stored, so that its sender must not hear that it was taken before that.
    pub(super) is_stored: bool,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Unanswered {
    /// The client said no.
    Refused(RpcError, Receipt),
    /// Its answers do not fit.
    Unfit(String),
    /// It waits for too many responses of this client already.
    TooMany,
    /// The session, or the stream, is over.
    Gone,
}

impl From<Unanswered> for Stop {
    fn from(why: Unanswered) -> Self {
        match why {
            Unanswered::Refused(error, _) => Self::NotAnswered(error.message.into_owned()),
            Unanswered::Unfit(why) => Self::BadAnswer(why),
            Unanswered::TooMany => Self::NotAnswered("it has too many questions to answer".into()),
            Unanswered::Gone => Self::NotAnswered("its session is over".into()),
        }
    }
}

/// On which stream a question, and what belongs to it, is put.
pub(super) enum Place {
    /// On that of the call that asks.
    Call(Arc<Channel>),
    /// Wherever the client hears of this task.
    Task(TaskId),
}

impl Place {
    /// The stream, once there is one.
    pub(super) async fn outlet(&self, session: &Session) -> Result<Arc<Channel>, Unanswered> {
        let id = match self {
            Self::Call(channel) => return Ok(Arc::clone(channel)),
            Self::Task(id) => id,
        };
        let mut moves = session.moves.subscribe();
        loop {
            if let Some(outlet) = session.outlet(id) {
                return Ok(outlet);
            }
            tokio::select! {
                changed = moves.changed() => changed.map_err(|_| Unanswered::Gone)?,
                () = session.ended.cancelled() => return Err(Unanswered::Gone),
            }
        }
    }
}

/// A request of ours that waits for its response. Whoever drops it takes it back.
pub(super) struct Sent {
    session: Arc<Session>,
    channel: Arc<Channel>,
    id: RequestId,
    response: Option<oneshot::Receiver<Came>>,
    /// Whether the client is told when it is taken back. What may become a task there is cancelled as a task.
    tells: bool,
}

impl Session {
    /// Sends a request on a stream.
    pub(super) async fn send(
        self: &Arc<Self>,
        channel: &Arc<Channel>,
        Outgoing { id, tells, is_stored }: Outgoing,
        write: impl FnOnce(&RequestId) -> String,
    ) -> Result<Sent, Unanswered> {
        let (answered, response) = oneshot::channel();
        {
            let mut asking = self.asking.lock();
            if asking.len() >= self.limits.asking_max {
                return Err(Unanswered::TooMany);
            }
            asking.insert(id.clone(), Answered { to: answered, is_stored });
        }
        let text = write(&id);
        let sent =
            Sent { session: Arc::clone(self), channel: Arc::clone(channel), id, response: Some(response), tells };
        if self.ended.is_cancelled() || !channel.say(text).await {
            return Err(Unanswered::Gone);
        }
        Ok(sent)
    }

    /// Takes the response to a request of ours, and comes back when it was dealt with. One that nobody waits for is
    /// ignored, unless it answers a question that was asked before a restart.
    pub(super) async fn answered(self: &Arc<Self>, response: &Response<'_>) {
        let Some(id) = &response.id else { return };
        let outcome = match &response.outcome {
            Ok(result) => Ok((*result).to_owned()),
            Err(error) => Err(error.clone()),
        };
        let waiting = self.asking.lock().remove(id);
        if let Some(waiting) = waiting {
            let (receipt, taken) = oneshot::channel();
            // Whoever asked may have gone just now.
            let _ = waiting.to.send(Came { outcome, receipt: Receipt(receipt) });
            if waiting.is_stored {
                let _ = taken.await;
            }
        } else if let Some((task, question)) = self.question_of(id) {
            // Beside whoever waits for it, who may not wait for as long as the store takes.
            let late = answered_late(Arc::clone(self), self.key(task), question, outcome);
            let _ = self.shared.tracker.spawn(late).await;
        }
    }
}

/// Brings a task the answer to a question that another process asked in this session, if it is still open.
async fn answered_late(session: Arc<Session>, key: TaskKey, question: QuestionKey, outcome: Outcome) {
    let Ok(found) = session.shared.engine.read(&key).await else { return };
    let Some(open) = found.task.phase.questions().and_then(|open| open.find(&question)) else { return };
    let put = of_task(&found.task, open);
    let body = match question::reply(&put.asking(None), as_ref(&outcome)) {
        Reply::Answer(body) => body,
        Reply::Refused(error) => not_answered(&error.message),
        // It is asked again when its client comes back to the task.
        Reply::Unfit(_) | Reply::Task(_) => return,
    };
    store(&session, &key, &question, body, put.method()).await;
}

impl Sent {
    pub(super) async fn response(mut self) -> Result<Came, Unanswered> {
        let Some(response) = self.response.as_mut() else { return Err(Unanswered::Gone) };
        let came = response.await;
        self.response = None;
        came.map_err(|_| Unanswered::Gone)
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        let Some(response) = self.response.take() else { return };
        if !self.tells {
            return requestor::cancel_what_it_makes(&self.session, self.id.clone(), response);
        }
        if self.session.asking.lock().remove(&self.id).is_some() {
            let cancelled = Cancelled { request_id: self.id.clone(), reason: Some("The answer is not needed.".into()) };
            let cancelled = cancelled.notification();
            // Where it was asked may be over already.
            if !self.channel.mention(&cancelled)
                && let Some(outlet) = self.session.any_outlet()
            {
                outlet.mention(&cancelled);
            }
        }
    }
}

/// A question on its way.
pub(super) struct Put {
    pub(super) key: String,
    pub(super) kind: QuestionKind,
    pub(super) params: Json,
    /// The task that asks, and its parent.
    pub(super) related: Option<(TaskId, Option<TaskId>)>,
    pub(super) place: Place,
}

impl Put {
    fn method(&self) -> &'static str {
        longhaul_wire::question::method(self.kind)
    }

    /// A name for a request that asks it. That of a task's says which question it is, and outlives this process.
    fn request_id(&self, session: &Session) -> RequestId {
        match &self.place {
            Place::Task(task) => session.question_id(task, &self.key),
            Place::Call(_) => session.next_id(),
        }
    }

    pub(super) fn asking(&self, as_task_ms: Option<u64>) -> Asking<'_> {
        let related = self.related.as_ref().map(|(task_id, parent)| Related { task_id, parent: parent.as_ref() });
        Asking { key: &self.key, kind: self.kind, params: &self.params, related, as_task_ms }
    }
}

/// Puts a question to the client, first on this stream, and comes back with an answer that fits. `taken` is set when the
/// client has made a task of it: then it need not be asked again, whatever becomes of the stream.
pub(super) async fn put(
    session: &Arc<Session>,
    put: &Put,
    first: Arc<Channel>,
    taken: &AtomicBool,
) -> Result<(Json, Receipt), Unanswered> {
    let mut channel = first;
    let mut why = String::new();
    let as_task_ms = session.peer.can_run_as_task(put.kind).then_some(REMOTE_TASK_MS);
    for _ in 0..ASKED_MAX {
        let asking = put.asking(as_task_ms);
        let told = session.remote_told.subscribe();
        let is_stored = matches!(put.place, Place::Task(_));
        let outgoing = Outgoing { id: put.request_id(session), tells: as_task_ms.is_none(), is_stored };
        let write = |id: &RequestId| question::request(id, &asking, session.peer);
        let Came { outcome, mut receipt } = session.send(&channel, outgoing, write).await?.response().await?;
        let mut reply = question::reply(&asking, as_ref(&outcome));
        let result;
        if let Reply::Task(task) = reply {
            taken.store(true, Ordering::Relaxed);
            drop(receipt);
            Came { outcome: result, receipt } = requestor::result(session, &put.place, task, &told).await?;
            taken.store(false, Ordering::Relaxed);
            reply = question::reply(&put.asking(None), as_ref(&result));
        }
        match reply {
            Reply::Answer(answer) => return Ok((answer, receipt)),
            Reply::Refused(error) => return Err(Unanswered::Refused(error, receipt)),
            Reply::Unfit(wrong) => why = wrong.to_string(),
            Reply::Task(wire::RemoteTask { id, .. }) => why = format!("it is a task again, {id}"),
        }
        // Its sender has to hear the question again.
        drop(receipt);
        channel = put.place.outlet(session).await?;
    }
    Err(Unanswered::Unfit(why))
}

pub(super) fn as_ref(outcome: &Outcome) -> Result<&RawValue, RpcError> {
    outcome.as_deref().map_err(Clone::clone)
}

/// The client of an ordinary call: it is asked on the stream of its call.
pub(super) struct Client {
    pub(super) session: Arc<Session>,
    pub(super) channel: Arc<Channel>,
}

impl Requestor for Client {
    fn can_answer(&self, kind: QuestionKind, params: &Json) -> bool {
        self.session.peer.can_answer(kind, params)
    }

    fn fits(&self, kind: QuestionKind, params: &Json, answer: &Json) -> Result<(), String> {
        let answer: &RawValue = serde_json::from_str(answer.as_str()).map_err(|error| error.to_string())?;
        check_parts(None, kind, params, answer).map_err(|wrong| wrong.to_string())
    }

    fn log(&self, line: &LogLine) {
        let message = log::message(line);
        if logging::is_wanted(message, self.session.log_level()) {
            self.channel.offer(&logging::notification(message, None));
        }
    }

    fn ask(&self, question: OpenQuestion) -> Option<BoxFuture<'_, Result<Json, Stop>>> {
        Some(Box::pin(async move {
            let OpenQuestion { key, kind, params } = question;
            let place = Place::Call(Arc::clone(&self.channel));
            let question = Put { key, kind, params, related: None, place };
            let taken = AtomicBool::new(false);
            Ok(put(&self.session, &question, Arc::clone(&self.channel), &taken).await?.0)
        }))
    }
}

/// The open questions of one task, as far as they were put to this client.
#[derive(Default)]
pub(super) struct Open {
    by_key: HashMap<QuestionKey, Out>,
}

/// A question that is out. When this is dropped, it is taken back.
struct Out {
    closed: CancellationToken,
    _guard: DropGuard,
    /// Where it was put.
    channels: Vec<Arc<Channel>>,
    taken: Arc<AtomicBool>,
    given_up: Arc<AtomicBool>,
}

impl Out {
    fn new() -> Self {
        let closed = CancellationToken::new();
        let guard = closed.clone().drop_guard();
        Self { closed, _guard: guard, channels: Vec::new(), taken: Arc::default(), given_up: Arc::default() }
    }

    /// Whether the client has it, or will not have it again.
    fn is_settled(&self) -> bool {
        self.given_up.load(Ordering::Relaxed)
            || self.taken.load(Ordering::Relaxed)
            || self.channels.iter().any(|channel| channel.is_heard())
    }
}

impl Open {
    /// Takes back what is no longer open; puts what is, if somebody hears it. A question whose stream broke is put again,
    /// as a new request; the first answer to either counts.
    pub(super) fn keep_up(&mut self, session: &Arc<Session>, task: &Task, outlet: Option<&Arc<Channel>>) {
        let open = task.phase.questions();
        self.by_key.retain(|key, _| open.is_some_and(|open| open.find(key).is_some()));
        let (Some(open), Some(outlet)) = (open, outlet) else { return };
        for question in open {
            if !session.peer.can_answer(question.kind, &question.params) {
                continue;
            }
            let out = self.by_key.entry(question.key.clone()).or_insert_with(Out::new);
            if !out.is_settled() {
                out.channels.retain(|channel| !Arc::ptr_eq(channel, outlet));
                out.channels.push(Arc::clone(outlet));
                let signals = (out.closed.clone(), Arc::clone(&out.taken), Arc::clone(&out.given_up));
                let put = of_task(task, question);
                let ask = ask(Arc::clone(session), task.key.clone(), put, Arc::clone(outlet), signals);
                session.shared.tracker.spawn(ask);
            }
        }
    }
}

fn of_task(task: &Task, question: &Question) -> Put {
    Put {
        key: question.key.as_str().to_owned(),
        kind: question.kind,
        params: question.params.clone(),
        related: Some((task.key.id.clone(), task.family.parent.clone())),
        place: Place::Task(task.key.id.clone()),
    }
}

type Signals = (CancellationToken, Arc<AtomicBool>, Arc<AtomicBool>);

/// Puts a question of a task, and brings the task its answer.
async fn ask(session: Arc<Session>, key: TaskKey, question: Put, outlet: Arc<Channel>, signals: Signals) {
    let (closed, taken, given_up) = signals;
    let answer = tokio::select! {
        () = closed.cancelled() => return,
        () = session.ended.cancelled() => return,
        answer = put(&session, &question, outlet, &taken) => answer,
    };
    taken.store(false, Ordering::Relaxed);
    // Whoever answered is told so when it is stored, or cannot be of use any more.
    let (body, _receipt) = match answer {
        Ok((body, receipt)) => (body, receipt),
        Err(Unanswered::Refused(error, receipt)) => (not_answered(&error.message), receipt),
        Err(Unanswered::Unfit(why)) => {
            // Somebody else may know better: the question stays open, but this client is not asked again.
            tracing::info!(task = %key.id, why, "a client's answers do not fit the question");
            given_up.store(true, Ordering::Relaxed);
            return;
        }
        Err(Unanswered::TooMany | Unanswered::Gone) => return,
    };
    store(&session, &key, &QuestionKey::from_text(&question.key), body, question.method()).await;
}

/// Brings a task its answer. The client has given it and will not be asked again, so a store that is in trouble is waited
/// for.
async fn store(session: &Session, key: &TaskKey, question: &QuestionKey, body: Json, method: &'static str) {
    let mut pause = STORE_PAUSE_MIN;
    loop {
        match session.shared.engine.answer(key, question.clone(), body.clone()).await {
            Ok(_) => return answered(audit::stateful(&session.owner, method), &key.id, question),
            // Somebody else was quicker, or the task is over.
            Err(EngineError::Store(StoreError::Refused(_) | StoreError::NotFound)) => return,
            Err(error) => {
                tracing::warn!(task = %key.id, %error, "an answer could not be stored; trying again");
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    () = session.shared.closing.cancelled() => return,
                }
                pause = STORE_PAUSE_MAX.min(pause * 2);
            }
        }
    }
}
