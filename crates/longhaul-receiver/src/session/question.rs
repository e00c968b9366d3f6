//! Questions to the client: requests of the server on a stream that the client reads, and the client's responses.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use longhaul_engine::audit::{self, RequestSource};
use longhaul_engine::{CtxError, EngineError, OpenQuestion};
use longhaul_store::StoreError;
use longhaul_task::{Answer, Json, Question, QuestionKey, QuestionKind, Task, TaskId, TaskKey};
use longhaul_wire::ask::{self, AskReply, ClientQuestion};
use longhaul_wire::jsonrpc::RequestId;
use longhaul_wire::remote_task::RemoteTask;
use longhaul_wire::{Generation, RelatedTask, question};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::Session;
use super::follow::FollowedTask;
use super::outgoing::{ClientResponse, NoAnswer, OutgoingRequest, Receipt};
use super::remote_task;
use crate::stream::MessageStream;

/// How often a question is asked if the answers do not fit it.
pub(super) const ASKED_MAX: usize = 3;

/// The first pause before an answer is stored again after a failure.
const STORE_PAUSE_MIN: Duration = Duration::from_millis(50);

/// The longest such pause.
const STORE_PAUSE_MAX: Duration = Duration::from_secs(5);

/// How long a client is asked to keep a task that it makes of a question.
const REMOTE_TASK_MS: u64 = 60 * 60 * 1_000;

/// The stream that a question, and everything about it, is sent on.
pub(super) enum QuestionStream {
    /// The stream of the call that asks.
    Call(Arc<MessageStream>),
    /// Whichever stream the client currently hears of this task on.
    Task(TaskId),
}

impl QuestionStream {
    /// The stream, as soon as there is one.
    pub(super) async fn current(&self, session: &Session) -> Result<Arc<MessageStream>, NoAnswer> {
        let id = match self {
            Self::Call(stream) => return Ok(Arc::clone(stream)),
            Self::Task(id) => id,
        };
        let mut changes = session.reader_changes.subscribe();
        loop {
            if let Some(stream) = session.stream_for(id) {
                return Ok(stream);
            }
            tokio::select! {
                result = changes.changed() => result.map_err(|_| NoAnswer::SessionOver)?,
                () = session.ended.cancelled() => return Err(NoAnswer::SessionOver),
            }
        }
    }

    pub(super) fn is_of_task(&self) -> bool {
        matches!(self, Self::Task(_))
    }
}

/// A question on its way to the client.
struct OutgoingQuestion {
    generation: Generation,
    key: String,
    kind: QuestionKind,
    params: Json,
    /// The task that asks, and its parent.
    related: Option<(TaskId, Option<TaskId>)>,
    stream: QuestionStream,
    /// Set while the client answers by way of a task of its own: then the question need not be asked again, even if its
    /// stream breaks.
    is_remote_task: Arc<AtomicBool>,
}

impl OutgoingQuestion {
    fn of_task(generation: Generation, task: &Task, question: &Question) -> Self {
        Self {
            generation,
            key: question.key.as_str().to_owned(),
            kind: question.kind,
            params: question.params.clone(),
            related: Some((task.key.id.clone(), task.family.parent.clone())),
            stream: QuestionStream::Task(task.key.id.clone()),
            is_remote_task: Arc::default(),
        }
    }

    fn method(&self) -> &'static str {
        question::method(self.kind)
    }

    /// The ID of a task's question names the question, so that a response after a restart still finds it.
    fn request_id(&self, session: &Session) -> RequestId {
        match &self.stream {
            QuestionStream::Task(task) => session.question_request_id(task, &self.key, self.generation),
            QuestionStream::Call(_) => session.next_request_id(),
        }
    }

    fn asking(&self, as_task_ms: Option<u64>) -> ClientQuestion<'_> {
        let related = self.related.as_ref().map(|(task_id, parent)| RelatedTask {
            generation: self.generation,
            task_id,
            parent: parent.as_ref(),
        });
        ClientQuestion { key: &self.key, kind: self.kind, params: &self.params, related, as_task_ms }
    }

    /// Puts the question to the client, first on this stream, until an answer fits.
    async fn ask(&self, session: &Arc<Session>, mut stream: Arc<MessageStream>) -> Result<(Json, Receipt), NoAnswer> {
        let mut mismatch = String::new();
        for _ in 0..ASKED_MAX {
            let can_run_as_task = session.peer.can_run_as_task(self.kind) && !session.is_asked_without_tasks();
            let as_task_ms = can_run_as_task.then_some(REMOTE_TASK_MS);
            let asking = self.asking(as_task_ms);
            let notices = session.remote_task_notices.subscribe();
            let outgoing = OutgoingRequest {
                id: self.request_id(session),
                is_cancelled_by_notification: as_task_ms.is_none(),
                must_be_stored: self.stream.is_of_task(),
            };
            let write = |id: &RequestId| ask::request(id, &asking, session.peer);
            let mut response = session.send_request(&stream, outgoing, write).await?.response().await?;
            let mut reply = ask::reply(&asking, response.result());
            let is_task = matches!(reply, AskReply::Task(_));
            if let AskReply::Task(task) = reply {
                self.is_remote_task.store(true, Ordering::Relaxed);
                drop(response);
                response = remote_task::result(session, &self.stream, task, &notices).await?;
                self.is_remote_task.store(false, Ordering::Relaxed);
                reply = ask::reply(&self.asking(None), response.result());
            }
            match reply {
                AskReply::Answer(answer) => return Ok((answer, response.receipt)),
                // The client has declared tasks that it cannot make. Without one it may answer.
                AskReply::Refused(error) if !is_task && as_task_ms.is_some() && error.is_of_protocol() => {
                    session.ask_plainly();
                }
                AskReply::Refused(error) => return Err(NoAnswer::Refused(error, response.receipt)),
                AskReply::Unfit(wrong) => mismatch = wrong.to_string(),
                AskReply::Task(RemoteTask { id, .. }) => mismatch = format!("it is a task again, {id}"),
            }
            // The client can only receive the question again after its response was acknowledged.
            drop(response);
            stream = self.stream.current(session).await?;
        }
        Err(NoAnswer::Unfit(mismatch))
    }
}

/// Puts a question of an ordinary call to its client, on the stream of the call.
pub(crate) async fn ask_on_stream(
    session: &Arc<Session>,
    generation: Generation,
    stream: &Arc<MessageStream>,
    question: OpenQuestion,
) -> Result<Json, CtxError> {
    let OpenQuestion { key, kind, params } = question;
    let question = OutgoingQuestion {
        generation,
        key,
        kind,
        params,
        related: None,
        stream: QuestionStream::Call(Arc::clone(stream)),
        is_remote_task: Arc::default(),
    };
    Ok(question.ask(session, Arc::clone(stream)).await?.0)
}

/// The open questions of one task that were put to this client.
pub(super) struct AskedQuestions {
    generation: Generation,
    by_key: HashMap<QuestionKey, AskedQuestion>,
}

/// A question that was put to the client. Dropping it takes the question back.
struct AskedQuestion {
    taken_back: CancellationToken,
    _guard: DropGuard,
    /// The streams it was sent on.
    streams: Vec<Arc<MessageStream>>,
    is_remote_task: Arc<AtomicBool>,
    /// The client's answers did not fit; it is not asked again.
    is_given_up: Arc<AtomicBool>,
}

impl AskedQuestion {
    fn new() -> Self {
        let taken_back = CancellationToken::new();
        let guard = taken_back.clone().drop_guard();
        Self {
            taken_back,
            _guard: guard,
            streams: Vec::new(),
            is_remote_task: Arc::default(),
            is_given_up: Arc::default(),
        }
    }

    /// Whether the client has the question, or will not get it again.
    fn is_delivered(&self) -> bool {
        self.is_given_up.load(Ordering::Relaxed)
            || self.is_remote_task.load(Ordering::Relaxed)
            || self.streams.iter().any(|stream| stream.has_reader())
    }
}

impl AskedQuestions {
    pub(super) fn new(generation: Generation) -> Self {
        Self { generation, by_key: HashMap::new() }
    }

    /// Takes back questions that are no longer open, and sends those that are, if there is a stream. A question whose
    /// stream broke is sent again as a new request; the first answer to either counts.
    /// A client that knows no tasks gets questions that name none.
    pub(super) fn update(
        &mut self,
        session: &Arc<Session>,
        task: &Task,
        stream: Option<&Arc<MessageStream>>,
        followed: &Arc<FollowedTask>,
    ) {
        let open = task.phase.questions();
        self.by_key.retain(|key, _| open.is_some_and(|open| open.find(key).is_some()));
        let (Some(open), Some(stream)) = (open, stream) else { return };
        for question in open {
            if !session.peer.can_answer(question.kind, &question.params) {
                continue;
            }
            let asked = self.by_key.entry(question.key.clone()).or_insert_with(AskedQuestion::new);
            if !asked.is_delivered() {
                asked.streams.retain(|other| !Arc::ptr_eq(other, stream));
                asked.streams.push(Arc::clone(stream));
                let of_task = OutgoingQuestion::of_task(self.generation, task, question);
                let outgoing = OutgoingQuestion {
                    is_remote_task: Arc::clone(&asked.is_remote_task),
                    related: of_task.related.clone().filter(|_| !followed.is_quiet()),
                    ..of_task
                };
                let (taken_back, given_up) = (asked.taken_back.clone(), Arc::clone(&asked.is_given_up));
                let (session, key, stream) = (Arc::clone(session), task.key.clone(), Arc::clone(stream));
                let (followed, question) = (Arc::clone(followed), question.key.clone());
                session.receiver.tracker.clone().spawn(async move {
                    let asked = ask_for_task(session, key, outgoing, stream, taken_back).await;
                    if let Err(reason) = asked {
                        given_up.store(reason == GivenUp::Unfit, Ordering::Relaxed);
                        followed.given_up.send_modify(|given_up| given_up.push(question));
                    }
                });
            }
        }
    }
}

/// Why a client is not asked an open question of a task again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GivenUp {
    /// Its answers did not fit.
    Unfit,
    /// It has too many questions to answer; on another stream it may be asked.
    TooMany,
}

/// Puts a question of a task to the client and stores the answer.
async fn ask_for_task(
    session: Arc<Session>,
    key: TaskKey,
    question: OutgoingQuestion,
    stream: Arc<MessageStream>,
    taken_back: CancellationToken,
) -> Result<(), GivenUp> {
    let answer = tokio::select! {
        () = taken_back.cancelled() => return Ok(()),
        () = session.ended.cancelled() => return Ok(()),
        answer = question.ask(&session, stream) => answer,
    };
    question.is_remote_task.store(false, Ordering::Relaxed);
    // The receipt is dropped when the answer is stored, or can no longer be stored.
    let (answer, _receipt) = match answer {
        Ok((body, receipt)) => (Answer::Given(body), receipt),
        Err(NoAnswer::Refused(error, receipt)) => (Answer::NotGiven(error.message.as_ref().into()), receipt),
        Err(NoAnswer::Unfit(why)) => {
            // The question stays open: another client of the owner may answer it.
            tracing::info!(task = %key.id, why, "a client's answers do not fit the question");
            return Err(GivenUp::Unfit);
        }
        Err(NoAnswer::TooManyQuestions) => return Err(GivenUp::TooMany),
        Err(NoAnswer::SessionOver) => return Ok(()),
    };
    store(&session, &key, &question, answer).await;
    Ok(())
}

impl Session {
    /// Stores a response that no request of this process waits for, if it answers an open question of a task: an earlier
    /// process has asked it in this session.
    pub(super) async fn take_late_answer(self: &Arc<Self>, id: &RequestId, response: ClientResponse) {
        let Some((task, key, generation)) = self.question_of(id) else { return };
        let session = Arc::clone(self);
        // In a task of its own: storing may take longer than the client waits.
        let late = self.receiver.tracker.spawn(async move {
            let key_of_task = session.key(task);
            let Ok(found) = session.receiver.engine.read(&key_of_task).await else { return };
            let Some(open) = found.task.phase.questions().and_then(|open| open.find(&key)) else { return };
            let question = OutgoingQuestion::of_task(generation, &found.task, open);
            let answer = match ask::reply(&question.asking(None), response.result()) {
                AskReply::Answer(body) => Answer::Given(body),
                AskReply::Refused(error) => Answer::NotGiven(error.message.as_ref().into()),
                // The question is asked again when the client comes back to the task.
                AskReply::Unfit(_) | AskReply::Task(_) => return,
            };
            store(&session, &key_of_task, &question, answer).await;
        });
        let _ = late.await;
    }
}

/// Stores the answer to a task's question. The client will not be asked again, so a store that fails is tried again.
async fn store(session: &Session, key: &TaskKey, question: &OutgoingQuestion, answer: Answer) {
    let question_key = QuestionKey::from_text(&question.key);
    let mut pause = STORE_PAUSE_MIN;
    loop {
        match session.receiver.engine.answer(key, question_key.clone(), answer.clone()).await {
            Ok(_) => {
                let generation = question.generation.label();
                let source = RequestSource { owner: &session.owner, generation, method: question.method() };
                return audit::answered(source, &key.id, &question_key);
            }
            // Another answer was first, or the task has ended.
            Err(EngineError::Store(StoreError::Refused(_) | StoreError::NotFound)) => return,
            Err(error) => {
                tracing::debug!(task = %key.id, %error, "an answer could not be stored; trying again");
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    () = session.receiver.closing.cancelled() => return,
                }
                pause = STORE_PAUSE_MAX.min(pause * 2);
            }
        }
    }
}
