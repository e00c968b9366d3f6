//! The stateful era: a client opens a session, and from then on both sides ask.
//!
//! ```text
//!  bytes ──► Session::take ──► one operation ──► an answer at once
//!                                    │
//!                                    └──► work ──► Channel ──► Reader (the transport): questions, progress, the answer
//!  engine.watch ──► follow ──► the stream on which this client hears of the task
//! ```
//!
//! One file per operation. A `Channel` is a stream to the client, `questions` puts questions on one and waits for the
//! answers, `requestor` waits for a client that answers by way of a task of its own.

mod channel;
mod follow;
mod limits;
mod pass;
mod questions;
mod requestor;
mod session;
mod tasks;
mod ticket;
mod tools_call;

use std::sync::Arc;
use std::time::Duration;

use longhaul_task::{Owner, TaskId, TaskKey};
use longhaul_wire::core2025::{
    Incoming, Notice, ORIGIN, Operation, Peer, Read, Request, acknowledge, initialize, read, tools_list,
};
use longhaul_wire::jsonrpc::{self, Rejected, RequestId, RpcError};
use longhaul_wire::refusal as words;

pub use channel::{Delivery, Reader};
pub use limits::SessionLimits;
pub use pass::{Pass, SESSION_MS_MAX, SessionId};
pub use session::Session;

use crate::{Caller, Http, Kind, Receiver, SOON_MS, audit, refusal};
use channel::Channel;
use ticket::Awaited;
use tokio::time::timeout;
use tools_call::{Begun, Done};

/// How long a client waits to hear that its answer is stored.
const ANSWER_STORED_TIME_MAX: Duration = Duration::from_secs(15);

/// What became of a message.
#[derive(Debug)]
pub enum Taken {
    /// It wants no answer.
    Noted,
    /// It is no message.
    Rejected {
        /// The refusal.
        text: String,
        /// What goes with it.
        http: Http,
    },
    /// It is answered.
    Answered {
        /// What was asked for.
        method: &'static str,
        /// The response.
        text: String,
        /// What goes with it.
        http: Http,
    },
    /// It is being worked on.
    Works {
        /// What was asked for; nothing, when that were several things at once.
        method: Option<&'static str>,
        /// What is said about it, the answer last. Several answers go out as one batch.
        reader: Reader,
    },
}

impl Receiver {
    /// Reads a handshake: with whom there will be a session, and what to answer.
    pub fn handshake(&self, request: &jsonrpc::Request<'_>, caller: &Caller) -> Result<(Peer, String), RpcError> {
        self.admit(&caller.owner, Kind::Other)?;
        let asked = initialize::Initialize::parse(request.params)?;
        tracing::debug!(client = %asked.client_name, version = %asked.client_version, "a client says hello");
        let options = &self.shared.options;
        let offer = initialize::Offer {
            name: &options.name,
            title: None,
            version: &options.version,
            instructions: options.instructions.as_deref(),
            tells_tool_changes: false,
            lists_tasks: caller.is_known,
        };
        Ok((asked.peer, initialize::answer(&request.id, asked.peer.revision, &offer)))
    }

    /// A pass for a new session, and the token for it.
    pub async fn issue(&self, owner: &Owner, peer: Peer) -> Result<(Pass, String), RpcError> {
        let engine = &self.shared.engine;
        let now = engine.now().await.map_err(|error| refusal::of_engine(&error))?;
        let pass = Pass::new(peer, now, &**engine.chance());
        let token = pass.seal(owner, &self.shared.session_seal, &**engine.chance());
        token.map(|token| (pass, token)).ok_or_else(|| RpcError::internal("The session could not be sealed."))
    }

    /// What a token says; nothing for one that is not this owner's, or too old.
    pub async fn open_pass(&self, owner: &Owner, token: &[u8]) -> Option<Pass> {
        let now = self.shared.engine.now().await.ok()?;
        Pass::open(token, owner, &self.shared.session_seal, now)
    }

    /// A session, new or taken up again by its name; one without a name ends with its connection.
    pub fn session(&self, id: Option<SessionId>, caller: &Caller, peer: Peer, limits: SessionLimits) -> Arc<Session> {
        Session::new(Arc::clone(&self.shared), id, caller, peer, limits)
    }
}

impl Session {
    /// Takes what the client sent in one piece.
    pub async fn take(self: &Arc<Self>, bytes: &[u8]) -> Taken {
        self.touch();
        match read(bytes, self.peer.revision) {
            Ok(Read::One(incoming)) => self.take_one(incoming).await,
            Ok(Read::Batch(messages)) => self.take_batch(messages).await,
            Err(rejected) => {
                let error = self.rejection(&rejected);
                Taken::Rejected { text: jsonrpc::error(rejected.id.as_ref(), &error), http: (&error).into() }
            }
        }
    }

    async fn take_one(self: &Arc<Self>, incoming: Incoming<'_>) -> Taken {
        let request = match incoming {
            Incoming::Request(request) => request,
            other => {
                return match timeout(ANSWER_STORED_TIME_MAX, self.note(&other)).await {
                    Ok(()) => Taken::Noted,
                    Err(_) => not_stored(),
                };
            }
        };
        let method = request.operation.method();
        match self.start(&request, None).await {
            Started::Answered(text, http) => Taken::Answered { method, text, http },
            Started::Works(channel) => reading(&channel, Some(method)),
        }
    }

    /// Takes several messages, each by itself. Their answers go out together.
    async fn take_batch(self: &Arc<Self>, messages: Vec<Result<Incoming<'_>, Rejected>>) -> Taken {
        let wants = |message: &Result<_, _>| !matches!(message, Ok(Incoming::Notice(_) | Incoming::Response(_)));
        let answers = messages.iter().filter(|message| wants(message)).count();
        let channel = (answers > 0).then(|| self.answering(answers));
        let reader = channel.as_ref().map(|channel| reading(channel, None));
        for message in messages {
            match (message, &channel) {
                (Ok(Incoming::Request(request)), Some(channel)) => {
                    if let Started::Answered(text, _) = self.start(&request, Some(channel)).await {
                        channel.respond(Some(&text));
                    }
                }
                (Err(rejected), Some(channel)) => {
                    channel.respond(Some(&jsonrpc::error(rejected.id.as_ref(), &self.rejection(&rejected))));
                }
                (Ok(other), _) => self.note(&other).await,
                (Err(_), None) => {}
            }
        }
        if let Some(channel) = channel {
            self.forget_when_done(channel);
        }
        reader.unwrap_or(Taken::Noted)
    }

    /// Why something is no message; or that there were too many.
    fn rejection(&self, rejected: &Rejected) -> RpcError {
        let too_many = self.shared.rates.admit(&self.owner, Kind::Other).err();
        let error = too_many.unwrap_or_else(|| rejected.error.clone());
        audit::refused_in_session(&self.owner, None, &error);
        error
    }

    /// Takes what wants no answer.
    async fn note(self: &Arc<Self>, incoming: &Incoming<'_>) {
        match incoming {
            Incoming::Response(response) => self.answered(response).await,
            Incoming::Notice(Notice::Cancelled(cancelled)) => {
                if let Some(cancel) = self.under_way.lock().get(&cancelled.request_id) {
                    cancel.cancel();
                }
            }
            Incoming::Notice(Notice::TaskStatus(task)) => {
                // Counted first: whoever is about to wait for this task looks there after it has made itself known.
                self.remote_told.send_modify(|count| *count += 1);
                if let Some(changed) = self.remote.lock().get(&task.id) {
                    changed.notify_one();
                }
            }
            Incoming::Notice(Notice::Initialized | Notice::Progress(_) | Notice::RootsChanged | Notice::Ignored)
            | Incoming::Request(_) => {}
        }
    }

    /// Answers a request, or begins to work on it: on a stream that carries others, too, or on one of its own.
    async fn start(self: &Arc<Self>, request: &Request<'_>, shared: Option<&Arc<Channel>>) -> Started {
        match self.operate(request, shared).await {
            Ok(started) => started,
            Err(error) => {
                audit::refused_in_session(&self.owner, Some(&request.operation), &error);
                Started::Answered(jsonrpc::error(Some(&request.id), &error), (&error).into())
            }
        }
    }

    async fn operate(
        self: &Arc<Self>,
        request: &Request<'_>,
        shared: Option<&Arc<Channel>>,
    ) -> Result<Started, RpcError> {
        self.shared.rates.admit(&self.owner, Kind::of(request.operation.method()))?;
        let id = &request.id;
        let answer = match &request.operation {
            Operation::Ping => acknowledge(id),
            Operation::TasksGet(task) => tasks::get(self, id, task.clone()).await?,
            Operation::TasksList { cursor } => tasks::list(self, id, cursor.as_deref()).await?,
            Operation::TasksCancel(task) => tasks::cancel(self, id, task.clone()).await?,
            Operation::SetLevel(level) => {
                *self.level.lock() = Some(*level);
                acknowledge(id)
            }
            Operation::ToolsList { cursor } => {
                // All tools are on the first page, so nobody can have a cursor of ours.
                if cursor.is_some() {
                    return Err(words::no_such_cursor());
                }
                let tools = self.shared.catalogue.declarations();
                let page = tools_list::Page { tools: &tools, next_cursor: None, may_get_tickets: false };
                tools_list::answer(id, &page, self.peer.revision)
            }
            Operation::TasksResult(task) => {
                let key = self.key(task.clone());
                match tasks::result_now(self, id, &key).await? {
                    Some(answer) => answer,
                    None => return self.wait_for_result(id, key, shared).map(Started::Works),
                }
            }
            Operation::ToolsCall(call) => {
                let token = request.meta.progress_token.clone();
                match tools_call::begin(self, id, call, token)? {
                    Begun::Answered(answer) => answer,
                    Begun::Work(work) => {
                        let (request, owner, tool) = (id.clone(), self.owner.clone(), call.name.to_string());
                        let works = self.work(id, None, shared, move |channel| async move {
                            work.run(&channel).await.unwrap_or_else(|error| {
                                audit::call_failed(ORIGIN, &owner, &tool, &error);
                                Done { answer: jsonrpc::error(Some(&request), &error), task: None }
                            })
                        });
                        return works.map(Started::Works);
                    }
                }
            }
        };
        Ok(Started::Answered(answer, Http::OK))
    }

    fn wait_for_result(
        self: &Arc<Self>,
        id: &RequestId,
        key: TaskKey,
        shared: Option<&Arc<Channel>>,
    ) -> Result<Arc<Channel>, RpcError> {
        let (session, request, task) = (Arc::clone(self), id.clone(), key.id.clone());
        self.work(id, Some(&task), shared, move |channel| async move {
            let answer = tasks::result(&session, &request, &key, &channel).await;
            Done { answer, task: None }
        })
    }

    /// Goes on with what a stream was to answer that is not here any more: it was lost with another process, or left for
    /// too long. The result of a task can be waited for again; whatever else it was, the client hears that it is lost.
    pub async fn resume_lost(self: &Arc<Self>, ticket: &str) -> Option<Reader> {
        let awaited = self.awaited(ticket)?;
        let id = awaited.request()?;
        if self.under_way.lock().contains_key(&id) {
            return None;
        }
        let answer = match &awaited.task {
            None => jsonrpc::error(Some(&id), &words::lost()),
            Some(task) => {
                let key = self.key(task.clone());
                match tasks::result_now(self, &id, &key).await {
                    Ok(Some(answer)) => answer,
                    Ok(None) => return self.wait_for_result(&id, key, None).ok()?.stream_after(0),
                    Err(error) => jsonrpc::error(Some(&id), &error),
                }
            }
        };
        let channel = self.answering(1);
        channel.awaits(awaited);
        channel.respond(Some(&answer));
        let reader = channel.stream_after(0);
        // Not kept: whoever comes back with the ticket finds it again.
        let session = Arc::clone(self);
        self.shared.tracker.spawn(async move {
            channel.handed_over().await;
            session.forget(&channel);
        });
        reader
    }

    /// Works on a request beside others. A client that goes away does not end the work: it may come back for the answer.
    fn work<W>(
        self: &Arc<Self>,
        id: &RequestId,
        about: Option<&TaskId>,
        shared: Option<&Arc<Channel>>,
        work: impl FnOnce(Arc<Channel>) -> W,
    ) -> Result<Arc<Channel>, RpcError>
    where
        W: Future<Output = Done> + Send + 'static,
    {
        let cancel = self.begin(id)?;
        let channel = shared.map_or_else(|| self.answering(1), Arc::clone);
        let is_own = shared.is_none();
        if is_own {
            channel.awaits(Awaited::new(id, about.cloned()));
        }
        let work = work(Arc::clone(&channel));
        let (session, id, carries) = (Arc::clone(self), id.clone(), Arc::clone(&channel));
        self.shared.tracker.spawn(async move {
            let done = tokio::select! {
                // Cancelled first: not a word more.
                biased;
                () = cancel.cancelled() => None,
                () = carries.closed() => None,
                done = work => Some(done),
            };
            session.under_way.lock().remove(&id);
            session.touch();
            carries.respond(done.as_ref().map(|done| done.answer.as_str()));
            if let Some((key, told)) = done.and_then(|done| done.task) {
                // Nobody hears of a task before its own answer is out.
                carries.handed_over().await;
                session.attend(&key, told, false);
            }
            if is_own {
                session.forget_when_done(carries);
            }
        });
        Ok(channel)
    }

    /// Drops a stream when its client has had all of it; the last few of those that were streamed are kept for clients
    /// whose connection broke before they had it. One that is left alone is given up later.
    fn forget_when_done(self: &Arc<Self>, channel: Arc<Channel>) {
        let session = Arc::clone(self);
        self.shared.tracker.spawn(async move {
            channel.handed_over().await;
            if channel.is_done() {
                session.forget(&channel);
            } else {
                session.retire(&channel);
            }
        });
    }
}

/// The word to a client whose answer is not stored yet. It is not lost: it will be, as soon as the store takes it.
fn not_stored() -> Taken {
    let error = RpcError::try_later("NOT_STORED", "the answer could not be stored in time; it is tried on", SOON_MS);
    let error = error.with_status(503);
    Taken::Rejected { text: jsonrpc::error(None, &error), http: (&error).into() }
}

/// What became of a request.
enum Started {
    Answered(String, Http),
    Works(Arc<Channel>),
}

fn reading(channel: &Arc<Channel>, method: Option<&'static str>) -> Taken {
    match channel.read_after(0) {
        Some(reader) => Taken::Works { method, reader },
        // The session ended just now.
        None => Taken::Noted,
    }
}
