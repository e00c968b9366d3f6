//! Sessions of the stateful era: a client opens one with `initialize`, and from then on both sides send requests.
//!
//! ```text
//!  message ──► Session::receive ──► operation ──► an answer at once
//!                                       │
//!                                       └──► work ──► MessageStream ──► StreamReader (the transport)
//!  engine.watch ──► follow ──► questions, progress, status ──► the stream on which the client hears of the task
//! ```
//!
//! A session is a cache of one client's state. Everything that must not be lost is in the store or in a token that the
//! client keeps: [`token`] for the session itself, [`resume`] for streams and questions.

mod changes;
mod follow;
mod limits;
mod outgoing;
mod question;
mod receive;
mod remote_task;
mod resume;
mod streams;
pub(crate) mod table;
pub(crate) mod token;

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use longhaul_task::{Owner, TaskId, TaskKey};
use longhaul_wire::jsonrpc::{RequestId, RpcError};
use longhaul_wire::{Generation, LogLevel, Peer};
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use self::changes::SessionChanges;
use self::follow::FollowedTask;
pub(crate) use self::follow::LastNotified;
pub use self::limits::SessionLimits;
use self::outgoing::ResponseSlot;
pub(crate) use self::question::ask_on_stream;
pub(crate) use self::receive::ResponseDelivery;
use self::streams::Streams;
use self::token::SessionId;
use crate::exchange::Exchange;
use crate::receiver::ReceiverInner;
use crate::{Caller, refusal};

/// A session with one client.
pub(crate) struct Session {
    receiver: Arc<ReceiverInner>,
    /// Names the session in its token; `None` for a session that ends with its connection.
    id: Option<SessionId>,
    pub(crate) owner: Owner,
    is_identified: bool,
    pub(crate) peer: Peer,
    limits: SessionLimits,
    /// Different from that of every other session, before and after a restart. The server's request IDs begin with it.
    nonce: u64,
    requests_sent: AtomicU64,
    log_level: Mutex<Option<LogLevel>>,
    ended: CancellationToken,
    last_used: Mutex<Instant>,
    /// Requests of the client that are being answered, with the signal that cancels each.
    requests: Mutex<HashMap<RequestId, CancellationToken>>,
    /// Tasks that a cancellation of the request which created them cancels, the newest last.
    creations: Mutex<VecDeque<(RequestId, TaskKey)>>,
    /// The generation that the client's requests named last, as far as this process knows.
    last_marker: Mutex<Option<Generation>>,
    /// Rebuilt from its token, which does not hold the last marker.
    is_restored: bool,
    /// Requests to the client that have no response yet.
    questions: Mutex<HashMap<RequestId, ResponseSlot>>,
    streams: Mutex<Streams>,
    /// Changes whenever a stream gains or loses its reader.
    reader_changes: watch::Sender<u64>,
    followed: Mutex<HashMap<TaskId, Arc<FollowedTask>>>,
    changes: Mutex<SessionChanges>,
    /// Tasks that ended while the client had no stream open.
    unreported: Mutex<VecDeque<(TaskKey, Generation)>>,
    /// Tasks of the client whose end the server waits for.
    remote_tasks: Mutex<HashMap<Box<str>, Arc<Notify>>>,
    /// Counts the client's notifications about its own tasks.
    remote_task_notices: watch::Sender<u64>,
    /// The client declares tasks of its own but has failed to make one.
    is_asked_without_tasks: AtomicBool,
}

impl Session {
    pub(crate) fn new(
        receiver: Arc<ReceiverInner>,
        id: Option<SessionId>,
        caller: &Caller,
        peer: Peer,
        limits: SessionLimits,
        is_restored: bool,
    ) -> Arc<Self> {
        let nonce = receiver.random_number();
        Arc::new(Self {
            receiver,
            id,
            owner: caller.owner.clone(),
            is_identified: caller.is_identified,
            peer,
            limits,
            nonce,
            requests_sent: AtomicU64::new(0),
            log_level: Mutex::default(),
            ended: CancellationToken::new(),
            last_used: Mutex::new(Instant::now()),
            requests: Mutex::default(),
            creations: Mutex::default(),
            last_marker: Mutex::default(),
            is_restored,
            questions: Mutex::default(),
            streams: Mutex::default(),
            reader_changes: watch::channel(0).0,
            followed: Mutex::default(),
            changes: Mutex::default(),
            unreported: Mutex::default(),
            remote_tasks: Mutex::default(),
            remote_task_notices: watch::channel(0).0,
            is_asked_without_tasks: AtomicBool::new(false),
        })
    }

    /// The least severe log message that the client asked for.
    pub(crate) fn log_level(&self) -> Option<LogLevel> {
        *self.log_level.lock()
    }

    pub(crate) fn set_log_level(&self, level: LogLevel) {
        *self.log_level.lock() = Some(level);
    }

    fn is_asked_without_tasks(&self) -> bool {
        self.is_asked_without_tasks.load(Ordering::Relaxed)
    }

    /// From now on no question asks the client for a task.
    fn ask_plainly(&self) {
        self.is_asked_without_tasks.store(true, Ordering::Relaxed);
    }

    fn exchange(
        self: &Arc<Self>,
        id: RequestId,
        generation: Generation,
        follows_task: bool,
        method: &'static str,
    ) -> Exchange {
        Exchange {
            receiver: Arc::clone(&self.receiver),
            owner: self.owner.clone(),
            is_identified: self.is_identified,
            id,
            method,
            generation,
            follows_task,
            peer: self.peer,
            session: Some(Arc::clone(self)),
        }
    }

    /// Identifies this session among those of its owner, also after it was restored. It is not sent to clients.
    pub(crate) fn scope(&self) -> String {
        let id = self.id.map_or(u128::from(self.nonce), u128::from_be_bytes);
        format!("{id:032x}")
    }

    fn key(&self, id: TaskId) -> TaskKey {
        TaskKey { owner: self.owner.clone(), id }
    }

    /// The next ID for a request of the server.
    fn next_request_id(&self) -> RequestId {
        let number = self.requests_sent.fetch_add(1, Ordering::Relaxed) + 1;
        RequestId::from_text(&format!("{:016x}-{number}", self.nonce))
    }

    /// Registers a request of the client, so that it can be cancelled.
    fn begin_request(&self, id: &RequestId) -> Result<CancellationToken, RpcError> {
        let mut requests = self.requests.lock();
        if requests.contains_key(id) {
            return Err(refusal::request_id_in_use());
        }
        if requests.len() >= self.limits.requests_max {
            drop(requests);
            // So that the next request finds room. A client that comes back for a result gets it by its last event ID.
            self.close_abandoned_waits();
            return Err(refusal::too_many_in_flight());
        }
        let cancel = CancellationToken::new();
        requests.insert(id.clone(), cancel.clone());
        Ok(cancel)
    }

    /// Makes a request uncancellable: from here on it creates a task, which must not exist without its answer. Returns the
    /// signal that the client has tried to.
    pub(crate) fn make_uncancellable(&self, id: &RequestId) -> CancellationToken {
        let cancel = CancellationToken::new();
        if let Some(earlier) = self.requests.lock().get_mut(id) {
            *earlier = cancel.clone();
        }
        cancel
    }

    /// From now on, a cancellation of this request cancels the task that the request has created. Past the limit the oldest one
    /// is forgotten.
    pub(crate) fn register_creation(&self, id: &RequestId, task: TaskKey) {
        let mut creations = self.creations.lock();
        creations.retain(|(other, _)| other != id);
        creations.push_back((id.clone(), task));
        if creations.len() > self.limits.followed_max {
            creations.pop_front();
        }
    }

    /// The task that a cancellation of this request cancels. It is forgotten: a client may use the ID again.
    pub(crate) fn take_creation(&self, id: &RequestId) -> Option<TaskKey> {
        let mut creations = self.creations.lock();
        let index = creations.iter().position(|(other, _)| other == id)?;
        creations.remove(index).map(|(_, task)| task)
    }

    /// Ends the session: its streams close, requests of either side are dropped. Tasks go on.
    pub(crate) fn end(&self) {
        self.ended.cancel();
        self.questions.lock().clear();
        self.close_streams();
    }

    pub(crate) fn touch(&self) {
        *self.last_used.lock() = Instant::now();
    }

    /// Since when the session has been idle; `None` while a request is open or the client listens.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        let is_busy = !self.requests.lock().is_empty()
            || !self.questions.lock().is_empty()
            || self.streams.lock().is_listened_to();
        (!is_busy).then(|| *self.last_used.lock())
    }

    /// Since when the client has had no connection, although it may have left requests open.
    pub(crate) fn disconnected_since(&self) -> Option<Instant> {
        (!self.streams.lock().has_reader()).then(|| *self.last_used.lock())
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("owner", &self.owner).field("peer", &self.peer).finish_non_exhaustive()
    }
}
