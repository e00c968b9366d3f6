//! A session: what is under way between one client and this server, and where the client listens. A cache of the
//! client's doing: whatever must not be lost is in the store.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use longhaul_task::{Owner, TaskId, TaskKey};
use longhaul_wire::LogLevel;
use longhaul_wire::core2025::Peer;
use longhaul_wire::jsonrpc::{RequestId, RpcError};
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::channel::{Channel, Reader};
use super::follow::Follow;
use super::questions::Answered;
use super::{SessionId, SessionLimits};
use crate::Caller;
use crate::receiver::Shared;

/// A session with one client.
pub struct Session {
    pub(super) shared: Arc<Shared>,
    /// Its name, by which it is taken up again; none for one that ends with its connection.
    pub(super) id: Option<SessionId>,
    pub(super) owner: Owner,
    pub(super) peer: Peer,
    /// Whether the owner can be told from others.
    pub(super) is_known: bool,
    pub(super) limits: SessionLimits,
    /// Tells this session from every other one, before and after any restart: our request IDs begin with it.
    pub(super) nonce: u64,
    count: AtomicU64,
    pub(super) level: Mutex<Option<LogLevel>>,
    pub(super) ended: CancellationToken,
    used: Mutex<Instant>,
    pub(super) under_way: Mutex<HashMap<RequestId, CancellationToken>>,
    pub(super) asking: Mutex<HashMap<RequestId, Answered>>,
    streams: Mutex<Streams>,
    /// Changes whenever a stream can be heard, or no longer.
    pub(super) moves: watch::Sender<u64>,
    pub(super) follows: Mutex<HashMap<TaskId, Arc<Follow>>>,
    /// Tasks that ended while nobody listened.
    pub(super) untold: Mutex<VecDeque<TaskKey>>,
    /// Tasks of the client's that we wait for.
    pub(super) remote: Mutex<HashMap<Box<str>, Arc<Notify>>>,
    /// How often the client has told of a task of its own.
    pub(super) remote_told: watch::Sender<u64>,
}

#[derive(Default)]
struct Streams {
    /// Every stream that can be gone on with.
    all: HashMap<u64, Arc<Channel>>,
    /// Those that have come to their end, the newest last.
    retired: VecDeque<u64>,
    /// Those to listen on, the newest last.
    listening: Vec<Arc<Channel>>,
    /// Those that wait for a task's result, the newest last.
    results: HashMap<TaskId, Vec<Arc<Channel>>>,
}

impl Session {
    pub(crate) fn new(
        shared: Arc<Shared>,
        id: Option<SessionId>,
        caller: &Caller,
        peer: Peer,
        limits: SessionLimits,
    ) -> Arc<Self> {
        let bits = shared.engine.chance().bits();
        let nonce = u64::from_be_bytes(bits[..8].try_into().unwrap_or_default());
        Arc::new(Self {
            shared,
            id,
            owner: caller.owner.clone(),
            peer,
            is_known: caller.is_known,
            limits,
            nonce,
            count: AtomicU64::new(0),
            level: Mutex::default(),
            ended: CancellationToken::new(),
            used: Mutex::new(Instant::now()),
            under_way: Mutex::default(),
            asking: Mutex::default(),
            streams: Mutex::default(),
            moves: watch::channel(0).0,
            follows: Mutex::default(),
            untold: Mutex::default(),
            remote: Mutex::default(),
            remote_told: watch::channel(0).0,
        })
    }

    /// With whom.
    pub fn peer(&self) -> Peer {
        self.peer
    }

    /// Whose.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// The least severe log message that the client wants, once it has said so.
    pub fn log_level(&self) -> Option<LogLevel> {
        *self.level.lock()
    }

    /// Opens a stream to listen on. The oldest makes way if there are too many.
    pub fn listen(self: &Arc<Self>) -> Option<Reader> {
        let session = Arc::downgrade(self);
        let moved = move |_: Option<&TaskId>| session.upgrade().into_iter().for_each(|session| session.moved(None));
        let channel = Arc::new(Channel::new(self.number(), None, &self.limits).tells(moved));
        let excess = {
            let mut streams = self.streams.lock();
            streams.all.insert(channel.id(), Arc::clone(&channel));
            streams.listening.push(Arc::clone(&channel));
            let excess = streams.listening.len().saturating_sub(self.limits.listening_max.max(1));
            let old: Vec<_> = streams.listening.drain(..excess).collect();
            for old in &old {
                streams.all.remove(&old.id());
            }
            old
        };
        for old in excess {
            old.close();
        }
        let reader = channel.read_after(0);
        if self.ended.is_cancelled() {
            channel.close();
        }
        super::follow::tell_untold(self, &channel);
        reader
    }

    /// Goes on with a stream after the message of that number, if it is still there.
    pub fn resume(&self, stream: u64, after: u64) -> Option<Reader> {
        let channel = self.streams.lock().all.get(&stream).cloned()?;
        channel.read_after(after)
    }

    /// A stream for so many responses.
    pub(super) fn answering(self: &Arc<Self>, responses: usize) -> Arc<Channel> {
        let session = Arc::downgrade(self);
        // Whatever was said on it about a task has to be said elsewhere when it breaks.
        let moved = move |about: Option<&TaskId>| {
            if let (Some(task), Some(session)) = (about, session.upgrade()) {
                session.moved(Some(task));
            }
        };
        let channel = Arc::new(Channel::new(self.number(), Some(responses), &self.limits).tells(moved));
        self.streams.lock().all.insert(channel.id(), Arc::clone(&channel));
        channel
    }

    /// A number that no other stream has, before or after a restart.
    fn number(&self) -> u64 {
        let bits = self.shared.engine.chance().bits();
        u64::from_be_bytes(bits[..8].try_into().unwrap_or_default())
    }

    /// Keeps a stream that has come to its end, and drops the oldest of those.
    pub(super) fn retire(&self, channel: &Channel) {
        let mut streams = self.streams.lock();
        streams.retired.push_back(channel.id());
        if streams.retired.len() > self.limits.ended_streams_max
            && let Some(oldest) = streams.retired.pop_front()
        {
            streams.all.remove(&oldest);
        }
    }

    /// Drops a stream that has come to its end.
    pub(super) fn forget(&self, channel: &Channel) {
        self.streams.lock().all.remove(&channel.id());
    }

    /// Makes a stream one that waits for a task's result, for as long as the guard lives.
    pub(super) fn awaits_result(self: &Arc<Self>, id: &TaskId, channel: &Arc<Channel>) -> AwaitsResult {
        self.streams.lock().results.entry(id.clone()).or_default().push(Arc::clone(channel));
        self.moved(Some(id));
        AwaitsResult { session: Arc::clone(self), id: id.clone(), channel: Arc::clone(channel) }
    }

    /// Where a message about a task goes: to whoever waits for its result, else to the newest stream to listen on.
    pub(super) fn outlet(&self, id: &TaskId) -> Option<Arc<Channel>> {
        let streams = self.streams.lock();
        let waiting = streams.results.get(id).into_iter().flatten();
        let heard = |channel: &&Arc<Channel>| channel.is_heard();
        waiting.rev().find(heard).or_else(|| streams.listening.iter().rev().find(heard)).cloned()
    }

    /// Any stream that is heard, best one to listen on.
    pub(super) fn any_outlet(&self) -> Option<Arc<Channel>> {
        let streams = self.streams.lock();
        let heard = |channel: &&Arc<Channel>| channel.is_heard();
        streams.listening.iter().rev().find(heard).or_else(|| streams.all.values().find(heard)).cloned()
    }

    fn moved(&self, task: Option<&TaskId>) {
        let follows = self.follows.lock();
        match task {
            Some(id) => follows.get(id).into_iter().for_each(|follow| follow.nudge()),
            None => follows.values().for_each(|follow| follow.nudge()),
        }
        drop(follows);
        self.moves.send_modify(|count| *count += 1);
    }

    /// The next ID for a request of ours.
    pub(super) fn next_id(&self) -> RequestId {
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        RequestId::from_text(&format!("{:016x}-{count}", self.nonce))
    }

    /// Makes a request known to whoever may cancel it.
    pub(super) fn begin(&self, id: &RequestId) -> Result<CancellationToken, RpcError> {
        let mut under_way = self.under_way.lock();
        if under_way.contains_key(id) {
            return Err(RpcError::invalid_request("a request of this ID is still under way"));
        }
        if under_way.len() >= self.limits.under_way_max {
            drop(under_way);
            self.give_up_left_waits();
            return Err(crate::too_many_in_flight());
        }
        let cancel = CancellationToken::new();
        under_way.insert(id.clone(), cancel.clone());
        Ok(cancel)
    }

    /// Gives up waits for results whose clients are gone, to have room a moment later. Whoever comes back for one finds the
    /// result by what its last event says.
    fn give_up_left_waits(&self) {
        let is_left = |channel: &&Arc<Channel>| !channel.is_heard();
        let left: Vec<_> = self.streams.lock().results.values().flatten().filter(is_left).cloned().collect();
        for channel in left {
            channel.close();
        }
    }

    /// From here on a request can no longer be cancelled: what it makes would be there and nobody would know.
    pub(super) fn commit(&self, id: &RequestId) {
        if let Some(cancel) = self.under_way.lock().get_mut(id) {
            *cancel = CancellationToken::new();
        }
    }

    /// Ends the session: streams close, our requests fail, the client's end. Tasks go on.
    pub fn end(&self) {
        self.ended.cancel();
        self.asking.lock().clear();
        let streams = std::mem::take(&mut *self.streams.lock());
        for channel in streams.all.into_values().chain(streams.listening) {
            channel.close();
        }
    }

    /// Ends the streams that would not end by themselves, so that a server that stops need not wait for them.
    pub fn stop_listening(&self) {
        let listening = std::mem::take(&mut self.streams.lock().listening);
        for channel in listening {
            channel.close();
        }
    }

    /// Says that the client has been heard of.
    pub fn touch(&self) {
        *self.used.lock() = Instant::now();
    }

    /// Since when nothing has happened in it; none while something is under way.
    pub fn idle_since(&self) -> Option<Instant> {
        let is_busy = !self.under_way.lock().is_empty()
            || !self.asking.lock().is_empty()
            || self.streams.lock().listening.iter().any(|channel| channel.is_heard());
        (!is_busy).then(|| *self.used.lock())
    }

    /// Gives up the streams whose clients did not come back.
    pub fn tidy(&self) {
        let left: Vec<_> = {
            let mut streams = self.streams.lock();
            let is_left = |channel: &Arc<Channel>| channel.is_left_for(self.limits.broken_time_max);
            streams.listening.retain(|channel| !is_left(channel));
            let left: Vec<_> = streams.all.extract_if(|_, channel| is_left(channel)).collect();
            streams.retired.retain(|id| left.iter().all(|(other, _)| id != other));
            left
        };
        for (_, channel) in left {
            channel.close();
        }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("owner", &self.owner).field("peer", &self.peer).finish_non_exhaustive()
    }
}

/// A stream that waits for a task's result.
pub(super) struct AwaitsResult {
    session: Arc<Session>,
    id: TaskId,
    channel: Arc<Channel>,
}

impl Drop for AwaitsResult {
    fn drop(&mut self) {
        let mut streams = self.session.streams.lock();
        if let Some(waiting) = streams.results.get_mut(&self.id) {
            if let Some(place) = waiting.iter().position(|channel| Arc::ptr_eq(channel, &self.channel)) {
                waiting.remove(place);
            }
            if waiting.is_empty() {
                streams.results.remove(&self.id);
            }
        }
        drop(streams);
        self.session.moved(Some(&self.id));
    }
}
