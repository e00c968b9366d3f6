//! A stream of messages to a client: notifications, requests of the server and, last, the responses that it carries.
//!
//! The sender half is a [`MessageStream`], the reader half a [`StreamReader`]. A stream of a session outlives its
//! connection: messages are kept within limits, and a new reader continues after the last one that the client has
//! seen. A stream outside of a session ends with its reader.

mod kept;
mod reader;

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use longhaul_engine::Share;
use longhaul_task::TaskId;
use longhaul_wire::Generation;
use longhaul_wire::jsonrpc::{self, RequestId};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

pub(crate) use self::kept::{KeptBytes, OwnerKeptBytes};
pub use self::reader::StreamReader;
pub(crate) use self::reader::{Delivery, EventId, Resumption};
use crate::SessionLimits;
use crate::operation::CallWait;

/// Called when a reader arrives or leaves and when the stream ends.
type OnReaderChange = dyn Fn(Option<&TaskId>) + Send + Sync;

/// The sender half. Messages are numbered from 1.
pub(crate) struct MessageStream {
    id: u64,
    kind: StreamKind,
    limits: SessionLimits,
    kept: OwnerKeptBytes,
    this: Weak<Self>,
    state: Mutex<StreamState>,
    message_added: Notify,
    message_read: Notify,
    closed: CancellationToken,
    on_reader_change: Box<OnReaderChange>,
    /// Made when an event ID first needs it, so that an event has the same ID however often it is sent.
    pending_answer: OnceLock<Option<String>>,
}

/// What a stream is for.
#[derive(Debug, Clone)]
pub(crate) enum StreamKind {
    /// The client listens; the stream carries no response and ends when it is closed.
    Listening,
    /// Carries the responses to a batch of a session. If `is_joined`, they are one message.
    Batch { responses: usize, is_joined: bool },
    /// Carries the response to one request of a session. `task` is set if the request waits for a task's result, `call`
    /// if it is the call that created the task.
    SessionRequest {
        request: RequestId,
        method: &'static str,
        generation: Generation,
        task: Option<TaskId>,
        call: Option<CallWait>,
    },
    /// Carries the response to one request outside of a session. Dropping the reader closes the stream.
    StatelessRequest { request: RequestId },
}

struct StreamState {
    kept: VecDeque<StreamMessage>,
    /// Number of the first message that is kept.
    first: u64,
    bytes: usize,
    /// Responses that have not been added yet; `None` for a listening stream.
    responses_missing: Option<usize>,
    /// The responses of a joined batch so far.
    joined: Vec<String>,
    is_closed: bool,
    /// Number of the current reader. An earlier reader gets nothing more.
    reader: u64,
    /// Number of the message that the reader takes next.
    next: u64,
    /// When the last reader left; `None` while there is one.
    unread_since: Option<Instant>,
    /// What the stream counts while it has no reader.
    unread_share: Option<Share>,
    /// Messages up to this number have no share of the owner's memory. They are dropped when they have been read.
    unkept: u64,
    /// The place among the owner's streams that keep something.
    place: Option<u64>,
    /// A reader has taken the last message.
    is_drained: bool,
    /// Messages went out as separate events, whose IDs the client can resume from.
    is_streamed: bool,
}

struct StreamMessage {
    text: Arc<str>,
    is_response: bool,
    _share: Option<Share>,
}

impl StreamState {
    fn is_over(&self) -> bool {
        self.is_closed || self.responses_missing == Some(0)
    }

    fn end(&self) -> u64 {
        self.first + self.kept.len() as u64
    }

    /// Drops the oldest messages past the limits.
    fn trim(&mut self, limits: &SessionLimits) {
        while (self.kept.len() > limits.kept_messages_max
            || self.bytes > limits.kept_bytes_max
            || self.first <= self.unkept)
            && self.drop_oldest()
        {}
    }

    /// Drops the oldest message, unless the current reader has not taken it yet.
    fn drop_oldest(&mut self) -> bool {
        if self.first >= self.next && self.unread_since.is_none() {
            return false;
        }
        let Some(message) = self.kept.pop_front() else { return false };
        self.bytes -= message.text.len();
        self.first += 1;
        true
    }

    fn drop_all(&mut self) {
        self.first = self.end();
        self.next = self.first;
        self.kept.clear();
        self.bytes = 0;
    }

    fn has_reader(&self) -> bool {
        !self.is_over() && self.unread_since.is_none()
    }

    /// Whether the reader is so far behind that senders wait.
    fn is_congested(&self, limits: &SessionLimits) -> bool {
        self.unread_since.is_none() && self.end().saturating_sub(self.next) >= limits.unread_messages_max as u64
    }
}

impl MessageStream {
    /// `id` must be different from that of every other stream, before and after a restart. `on_reader_change` is called
    /// when a reader arrives or leaves and when the stream ends, with the task that the stream waits for.
    pub(crate) fn new(
        id: u64,
        kind: StreamKind,
        limits: &SessionLimits,
        kept: OwnerKeptBytes,
        on_reader_change: impl Fn(Option<&TaskId>) + Send + Sync + 'static,
    ) -> Arc<Self> {
        let responses_missing = match &kind {
            StreamKind::Listening => None,
            StreamKind::Batch { responses, .. } => Some(*responses),
            StreamKind::SessionRequest { .. } | StreamKind::StatelessRequest { .. } => Some(1),
        };
        Arc::new_cyclic(|this| Self {
            id,
            kind,
            limits: limits.clone(),
            kept,
            this: Weak::clone(this),
            state: Mutex::new(StreamState {
                kept: VecDeque::new(),
                first: 1,
                bytes: 0,
                responses_missing,
                joined: Vec::new(),
                is_closed: false,
                reader: 0,
                next: 1,
                unread_since: None,
                unread_share: None,
                unkept: 0,
                place: None,
                is_drained: false,
                is_streamed: responses_missing.is_none(),
            }),
            message_added: Notify::new(),
            message_read: Notify::new(),
            closed: CancellationToken::new(),
            on_reader_change: Box::new(on_reader_change),
            pending_answer: OnceLock::new(),
        })
    }

    /// Whether messages are kept for a client that comes back.
    fn is_resumable(&self) -> bool {
        self.limits.kept_messages_max > 0
    }

    /// Memory to keep a message of this size in.
    fn share(&self, bytes: usize) -> Option<Share> {
        if self.is_resumable() && bytes <= self.limits.kept_bytes_max { self.kept.take(bytes) } else { None }
    }

    fn push(&self, state: &mut StreamState, text: &str, is_response: bool, share: Option<Share>) {
        match share {
            Some(_) => state.place = state.place.or_else(|| Some(self.kept.add(&self.this))),
            None => state.unkept = state.end(),
        }
        state.bytes += text.len();
        state.kept.push_back(StreamMessage { text: text.into(), is_response, _share: share });
        state.trim(&self.limits);
    }

    /// Gives up some of the memory that is kept for a client that comes back: the oldest message, or the stream if it has
    /// none. Returns false if there is nothing to give up.
    fn forget_oldest(&self) -> bool {
        let mut state = self.state.lock();
        if state.drop_oldest() {
            return true;
        }
        if state.unread_share.is_none() {
            state.place = None;
            return false;
        }
        drop(state);
        self.close();
        true
    }

    fn reader_changed(&self) {
        let task = match &self.kind {
            StreamKind::SessionRequest { task, .. } => task.as_ref(),
            _ => None,
        };
        (self.on_reader_change)(task);
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Whether it carries the responses to a batch as single messages.
    pub(crate) fn is_divided_batch(&self) -> bool {
        matches!(self.kind, StreamKind::Batch { is_joined: false, .. })
    }

    /// Adds a message once the reader has caught up. Returns false if the stream has ended.
    pub(crate) async fn send(&self, text: String) -> bool {
        let mut share = self.share(text.len());
        loop {
            let read = self.message_read.notified();
            tokio::pin!(read);
            read.as_mut().enable();
            {
                let mut state = self.state.lock();
                if state.is_over() {
                    return false;
                }
                if !state.is_congested(&self.limits) {
                    self.push(&mut state, &text, false, share.take());
                    break;
                }
            }
            read.await;
        }
        self.message_added.notify_waiters();
        true
    }

    /// Adds a message if the stream has a reader, however far behind. Returns whether it did.
    pub(crate) fn send_now(&self, text: &str) -> bool {
        self.send_if(text, self.share(text.len()), StreamState::has_reader)
    }

    /// Adds a message that may be lost: only if the stream has a reader that keeps up, and memory for the message.
    pub(crate) fn send_lossy(&self, text: &str) {
        let share = self.share(text.len());
        if share.is_some() || !self.is_resumable() {
            self.send_if(text, share, |state| state.has_reader() && !state.is_congested(&self.limits));
        }
    }

    fn send_if(&self, text: &str, share: Option<Share>, condition: impl FnOnce(&StreamState) -> bool) -> bool {
        let mut state = self.state.lock();
        let is_sent = condition(&state);
        if is_sent {
            self.push(&mut state, text, false, share);
            drop(state);
            self.message_added.notify_waiters();
        }
        is_sent
    }

    /// Adds the response to one of the requests that the stream carries; `None` for a cancelled request, which has
    /// none.
    pub(crate) fn respond(&self, text: Option<&str>) {
        let is_joined = matches!(self.kind, StreamKind::Batch { is_joined: true, .. });
        let share = text.filter(|_| !is_joined).and_then(|text| self.share(text.len()));
        let mut state = self.state.lock();
        if !state.is_over() {
            match text {
                Some(text) if is_joined => state.joined.push(text.to_owned()),
                Some(text) => self.push(&mut state, text, true, share),
                None => {}
            }
            let missing = state.responses_missing.map(|missing| missing.saturating_sub(1));
            if missing == Some(0)
                && let Some(batch) = jsonrpc::batch(&std::mem::take(&mut state.joined))
            {
                self.push(&mut state, &batch, true, self.share(batch.len()));
            }
            state.responses_missing = missing;
        }
        let is_over = state.is_over();
        drop(state);
        self.message_added.notify_waiters();
        if is_over {
            self.reader_changed();
        }
    }

    /// Ends the stream, even if responses are missing. A request outside of a session is cancelled by this, so what
    /// it has not delivered yet is dropped.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        state.unread_share = None;
        if state.unread_since.is_some() || matches!(self.kind, StreamKind::StatelessRequest { .. }) {
            state.drop_all();
        }
        drop(state);
        self.closed.cancel();
        self.message_added.notify_waiters();
        self.message_read.notify_waiters();
        self.reader_changed();
    }

    /// Resolves when the stream was closed before its end.
    pub(crate) async fn closed(&self) {
        self.closed.cancelled().await;
    }

    pub(crate) fn has_reader(&self) -> bool {
        self.state.lock().has_reader()
    }

    /// Resolves when the stream has a reader, or was closed.
    pub(crate) async fn reader(&self) {
        loop {
            let added = self.message_added.notified();
            tokio::pin!(added);
            added.as_mut().enable();
            {
                let state = self.state.lock();
                if state.unread_since.is_none() || state.is_closed {
                    return;
                }
            }
            added.await;
        }
    }

    pub(crate) fn is_unread_for(&self, time: Duration) -> bool {
        self.state.lock().unread_since.is_some_and(|since| since.elapsed() >= time)
    }

    /// Whether the client has everything in one piece, so that it cannot resume the stream.
    pub(crate) fn is_delivered_whole(&self) -> bool {
        let state = self.state.lock();
        state.is_drained && !state.is_streamed
    }

    /// Resolves when the reader has taken the last message, or has left.
    pub(crate) async fn read_to_end(&self) {
        loop {
            let read = self.message_read.notified();
            tokio::pin!(read);
            read.as_mut().enable();
            {
                let state = self.state.lock();
                if state.is_drained || state.is_closed || state.unread_since.is_some() {
                    return;
                }
            }
            read.await;
        }
    }

    /// A reader that continues after the message of this number and replaces the current one. `None` if the next
    /// message is no longer kept or does not exist yet.
    pub(crate) fn read_after(self: &Arc<Self>, number: u64) -> Option<StreamReader> {
        let reader = {
            let mut state = self.state.lock();
            let next = number.checked_add(1)?;
            if state.is_closed || next < state.first || next > state.end() {
                return None;
            }
            state.reader += 1;
            state.next = next;
            state.unread_since = None;
            state.unread_share = None;
            StreamReader::new(Arc::clone(self), state.reader)
        };
        self.message_added.notify_waiters();
        self.reader_changed();
        Some(reader)
    }

    /// The same for a stream whose messages go out as separate events.
    pub(crate) fn stream_after(self: &Arc<Self>, number: u64) -> Option<StreamReader> {
        self.state.lock().is_streamed = true;
        self.read_after(number)
    }
}

impl Drop for MessageStream {
    fn drop(&mut self) {
        if let Some(place) = self.state.get_mut().place {
            self.kept.remove(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use longhaul_task::Owner;

    use super::*;

    fn listening(limits: &SessionLimits) -> (Arc<MessageStream>, StreamReader) {
        listening_in(&KeptBytes::new(limits.all_kept_bytes_max), "ada", limits)
    }

    fn listening_in(all: &Arc<KeptBytes>, owner: &str, limits: &SessionLimits) -> (Arc<MessageStream>, StreamReader) {
        let kept = all.of(&Owner::parse(owner).unwrap());
        let stream = MessageStream::new(1, StreamKind::Listening, limits, kept, |_| ());
        let reader = stream.read_after(0).unwrap();
        (stream, reader)
    }

    async fn read(reader: &mut StreamReader, count: usize) -> Vec<String> {
        let mut texts = Vec::new();
        for _ in 0..count {
            texts.push(reader.next().await.unwrap().1.to_string());
        }
        texts
    }

    /// Sends each text, reads it, and drops the reader.
    async fn send_all(limits: &SessionLimits, texts: &[&str]) -> Arc<MessageStream> {
        let (stream, mut reader) = listening(limits);
        for text in texts {
            assert!(stream.send((*text).to_owned()).await);
            assert_eq!(read(&mut reader, 1).await, [*text]);
        }
        stream
    }

    #[tokio::test]
    async fn past_a_limit_of_messages_or_bytes_the_oldest_is_dropped() {
        for limits in [
            SessionLimits { kept_messages_max: 2, ..SessionLimits::default() },
            SessionLimits { kept_bytes_max: 10, ..SessionLimits::default() },
        ] {
            let stream = send_all(&limits, &["aaaaa", "bbbbb"]).await;
            assert_eq!(read(&mut stream.read_after(0).unwrap(), 2).await, ["aaaaa", "bbbbb"]);
            let stream = send_all(&limits, &["aaaaa", "bbbbb", "c"]).await;
            assert!(stream.read_after(0).is_none(), "the next message is not kept");
            assert_eq!(read(&mut stream.read_after(1).unwrap(), 2).await, ["bbbbb", "c"]);
        }
    }

    #[tokio::test]
    async fn a_message_that_the_reader_has_not_taken_is_kept_past_the_limits() {
        let limits = SessionLimits { kept_bytes_max: 1, kept_messages_max: 0, ..SessionLimits::default() };
        let (stream, mut reader) = listening(&limits);
        assert!(stream.send("long".to_owned()).await && stream.send("longer".to_owned()).await);
        assert_eq!(read(&mut reader, 2).await, ["long", "longer"]);
    }

    #[tokio::test]
    async fn a_sender_waits_for_a_reader_that_is_behind() {
        let limits = SessionLimits { unread_messages_max: 2, ..SessionLimits::default() };
        let (stream, mut reader) = listening(&limits);
        assert!(stream.send("a".to_owned()).await && stream.send("b".to_owned()).await);
        let mut third = pin!(stream.send("c".to_owned()));
        assert!(third.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        assert_eq!(read(&mut reader, 1).await, ["a"]);
        assert!(third.await);
        assert_eq!(read(&mut reader, 2).await, ["b", "c"]);
    }

    #[tokio::test]
    async fn past_an_owners_share_its_oldest_streams_lose_what_they_keep() {
        let (limits, all) = (SessionLimits::default(), KeptBytes::new(100_000));
        let send = async |owner: &str, text: &str| {
            let (stream, mut reader) = listening_in(&all, owner, &limits);
            assert!(stream.send(text.to_owned()).await);
            read(&mut reader, 1).await;
            (stream, reader)
        };
        let text = "x".repeat(10_000);
        let bob = send("bob", &text).await;
        let mut ada = Vec::new();
        for _ in 0..20 {
            ada.push(send("ada", &text).await);
        }
        let is_kept = |(stream, _): &(Arc<MessageStream>, StreamReader)| stream.state.lock().first == 1;
        let kept: Vec<bool> = ada.iter().map(is_kept).collect();
        assert!(!kept[0] && kept[19] && kept.is_sorted(), "{kept:?}");
        assert!(is_kept(&bob) && all.usage().used < 100_000);
        drop((ada, bob));
        assert_eq!(all.usage().used, 0);
    }

    #[tokio::test]
    async fn past_an_owners_share_its_oldest_streams_without_a_connection_end() {
        let (limits, all) = (SessionLimits::default(), KeptBytes::new(20 * kept::STREAM_BYTES));
        let streams: Vec<_> = (0..40).map(|_| listening_in(&all, "ada", &limits).0).collect();
        assert!(streams[0].read_after(0).is_none() && streams[39].read_after(0).is_some());
        let (connected, mut reader) = listening_in(&all, "ada", &limits);
        assert!(connected.send("still delivered".to_owned()).await);
        assert_eq!(read(&mut reader, 1).await, ["still delivered"]);
    }
}
