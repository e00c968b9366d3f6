//! A stream of messages to a client: notifications, requests of the server and, last, the responses that it carries.
//!
//! The sender half is a [`MessageStream`], the reader half a [`StreamReader`]. A stream of a session outlives its
//! connection: messages are kept within limits, and a new reader continues after the last one that the client has
//! seen. A stream outside of a session ends with its reader.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use longhaul_task::TaskId;
use longhaul_wire::Generation;
use longhaul_wire::jsonrpc::RequestId;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::SessionLimits;

/// Called when a reader arrives or leaves and when the stream ends.
type OnReaderChange = dyn Fn(Option<&TaskId>) + Send + Sync;

/// The sender half. Messages are numbered from 1.
pub(crate) struct MessageStream {
    id: u64,
    kind: StreamKind,
    limits: SessionLimits,
    state: Mutex<StreamState>,
    message_added: Notify,
    message_read: Notify,
    closed: CancellationToken,
    on_reader_change: Box<OnReaderChange>,
    /// Made when an event ID first needs it, so that an event has the same ID however often it is sent.
    ticket: OnceLock<Option<String>>,
}

/// What a stream is for.
#[derive(Debug, Clone)]
pub(crate) enum StreamKind {
    /// The client listens; the stream carries no response and ends when it is closed.
    Listening,
    /// Carries the responses to a batch of a session.
    Batch { responses: usize },
    /// Carries the response to one request of a session. `task` is set if the request waits for a task's result.
    SessionRequest { request: RequestId, generation: Generation, task: Option<TaskId> },
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
    is_closed: bool,
    /// Number of the current reader. An earlier reader gets nothing more.
    reader: u64,
    /// Number of the message that the reader takes next.
    next: u64,
    /// When the last reader left; `None` while there is one.
    unread_since: Option<Instant>,
    /// A reader has taken the last message.
    is_drained: bool,
    /// Messages went out as separate events, whose IDs the client can resume from.
    is_streamed: bool,
}

struct StreamMessage {
    text: Arc<str>,
    is_response: bool,
}

impl StreamState {
    fn is_over(&self) -> bool {
        self.is_closed || self.responses_missing == Some(0)
    }

    fn end(&self) -> u64 {
        self.first + self.kept.len() as u64
    }

    fn push(&mut self, text: &str, is_response: bool, limits: &SessionLimits) {
        self.bytes += text.len();
        self.kept.push_back(StreamMessage { text: text.into(), is_response });
        self.trim(limits);
    }

    /// Drops the oldest messages past the limits, except those that the current reader has not taken yet.
    fn trim(&mut self, limits: &SessionLimits) {
        while (self.kept.len() > limits.kept_messages_max || self.bytes > limits.kept_bytes_max)
            && (self.first < self.next || self.unread_since.is_some())
            && let Some(message) = self.kept.pop_front()
        {
            self.bytes -= message.text.len();
            self.first += 1;
        }
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
    /// `id` must be different from that of every other stream, before and after a restart.
    pub(crate) fn new(id: u64, kind: StreamKind, limits: &SessionLimits) -> Self {
        let responses_missing = match &kind {
            StreamKind::Listening => None,
            StreamKind::Batch { responses } => Some(*responses),
            StreamKind::SessionRequest { .. } | StreamKind::StatelessRequest { .. } => Some(1),
        };
        Self {
            id,
            kind,
            limits: limits.clone(),
            state: Mutex::new(StreamState {
                kept: VecDeque::new(),
                first: 1,
                bytes: 0,
                responses_missing,
                is_closed: false,
                reader: 0,
                next: 1,
                unread_since: None,
                is_drained: false,
                is_streamed: responses_missing.is_none(),
            }),
            message_added: Notify::new(),
            message_read: Notify::new(),
            closed: CancellationToken::new(),
            on_reader_change: Box::new(|_| ()),
            ticket: OnceLock::new(),
        }
    }

    /// Calls `observe` when a reader arrives or leaves and when the stream ends, with the task that the stream waits
    /// for.
    pub(crate) fn on_reader_change(mut self, observe: impl Fn(Option<&TaskId>) + Send + Sync + 'static) -> Self {
        self.on_reader_change = Box::new(observe);
        self
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

    pub(crate) fn is_batch(&self) -> bool {
        matches!(self.kind, StreamKind::Batch { .. })
    }

    /// Adds a message once the reader has caught up. Returns false if the stream has ended.
    pub(crate) async fn send(&self, text: String) -> bool {
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
                    state.push(&text, false, &self.limits);
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
        self.send_if(text, StreamState::has_reader)
    }

    /// Adds a message that may be lost: only if the stream has a reader that keeps up.
    pub(crate) fn send_lossy(&self, text: &str) {
        self.send_if(text, |state| state.has_reader() && !state.is_congested(&self.limits));
    }

    fn send_if(&self, text: &str, condition: impl FnOnce(&StreamState) -> bool) -> bool {
        let mut state = self.state.lock();
        let is_sent = condition(&state);
        if is_sent {
            state.push(text, false, &self.limits);
            drop(state);
            self.message_added.notify_waiters();
        }
        is_sent
    }

    /// Adds the response to one of the requests that the stream carries; `None` for a cancelled request, which has
    /// none.
    pub(crate) fn respond(&self, text: Option<&str>) {
        let mut state = self.state.lock();
        if !state.is_over() {
            if let Some(text) = text {
                state.push(text, true, &self.limits);
            }
            state.responses_missing = state.responses_missing.map(|missing| missing.saturating_sub(1));
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
        if let StreamKind::StatelessRequest { .. } = self.kind {
            state.first = state.end();
            state.next = state.first;
            state.kept.clear();
            state.bytes = 0;
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
            StreamReader { stream: Arc::clone(self), number: state.reader, resumption: None }
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

/// The reader half of a stream. Dropping it leaves a session's stream to be resumed, and ends any other stream with the
/// request that it answers.
pub struct StreamReader {
    stream: Arc<MessageStream>,
    number: u64,
    resumption: Option<Resumption>,
}

/// How the client of a session can resume a stream.
#[derive(Debug, Clone)]
pub(crate) struct Resumption {
    /// Names the request that the stream answers, for a process that does not have the stream.
    pub(crate) ticket: Option<String>,
    /// Whether the client's revision understands an event without data.
    pub(crate) takes_primer: bool,
}

/// How the messages of a stream are delivered.
pub(crate) enum Delivery {
    /// All at once: there are only responses, and all of them are here.
    Responses(Vec<Arc<str>>),
    /// One after the other.
    Stream(StreamReader),
}

impl StreamReader {
    /// The next message and its number; `None` after the last one, or if another reader has replaced this one.
    pub async fn next(&mut self) -> Option<(u64, Arc<str>)> {
        let stream = &self.stream;
        loop {
            let added = stream.message_added.notified();
            tokio::pin!(added);
            added.as_mut().enable();
            {
                let mut state = stream.state.lock();
                if state.reader != self.number {
                    return None;
                }
                let index = usize::try_from(state.next - state.first).unwrap_or(usize::MAX);
                if let Some(message) = state.kept.get(index) {
                    let text = Arc::clone(&message.text);
                    let number = state.next;
                    state.next += 1;
                    state.trim(&stream.limits);
                    drop(state);
                    stream.message_read.notify_waiters();
                    return Some((number, text));
                }
                if state.is_over() {
                    state.is_drained = true;
                    drop(state);
                    stream.message_read.notify_waiters();
                    return None;
                }
            }
            added.await;
        }
    }

    /// Waits up to `patience` for all responses. Delivers them at once if nothing else was sent, and the stream
    /// otherwise.
    pub(crate) async fn delivery(self, patience: Duration) -> Delivery {
        if let Ok(Some(responses)) = tokio::time::timeout(patience, self.responses_only()).await {
            return Delivery::Responses(responses);
        }
        self.stream.state.lock().is_streamed = true;
        Delivery::Stream(self)
    }

    async fn responses_only(&self) -> Option<Vec<Arc<str>>> {
        let stream = &self.stream;
        loop {
            let added = stream.message_added.notified();
            tokio::pin!(added);
            added.as_mut().enable();
            {
                let mut state = stream.state.lock();
                if state.kept.iter().any(|message| !message.is_response) {
                    return None;
                }
                if state.is_over() {
                    state.is_drained = true;
                    state.next = state.end();
                    let responses = state.kept.iter().map(|message| Arc::clone(&message.text)).collect();
                    drop(state);
                    stream.message_read.notify_waiters();
                    return Some(responses);
                }
            }
            added.await;
        }
    }

    /// Makes the stream one that its client can resume by event IDs.
    pub(crate) fn resumable(mut self, resumption: Resumption) -> Self {
        self.resumption = Some(resumption);
        self
    }

    /// The sealed name of what the stream answers, made by `seal` the first time.
    pub(crate) fn ticket(&self, seal: impl FnOnce(&StreamKind) -> Option<String>) -> Option<String> {
        self.stream.ticket.get_or_init(|| seal(&self.stream.kind)).clone()
    }

    /// The request outside of a session that this stream answers; `None` for a stream of a session.
    pub fn stateless_request(&self) -> Option<&RequestId> {
        match &self.stream.kind {
            StreamKind::StatelessRequest { request } => Some(request),
            _ => None,
        }
    }

    /// The event ID of the message of this number; `None` if the stream cannot be resumed.
    pub fn event_id(&self, number: u64) -> Option<String> {
        let resumption = self.resumption.as_ref()?;
        let id = EventId { stream: self.stream.id, number, ticket: resumption.ticket.as_deref() };
        Some(id.to_string())
    }

    /// The event ID to send before the first message, if the client's revision understands an event without data.
    pub fn primer_id(&self) -> Option<String> {
        self.resumption.as_ref().filter(|resumption| resumption.takes_primer)?;
        let last_read = self.stream.state.lock().next.saturating_sub(1);
        self.event_id(last_read)
    }
}

impl Drop for StreamReader {
    fn drop(&mut self) {
        {
            let mut state = self.stream.state.lock();
            if state.reader != self.number {
                return;
            }
            state.unread_since = Some(Instant::now());
            state.trim(&self.stream.limits);
        }
        if let StreamKind::StatelessRequest { .. } = self.stream.kind {
            self.stream.close();
            return;
        }
        self.stream.message_read.notify_waiters();
        self.stream.reader_changed();
    }
}

impl fmt::Debug for StreamReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamReader").field("stream", &self.stream.id).finish_non_exhaustive()
    }
}

/// The ID of an event: the stream, the number of the message and what the stream answers.
pub(crate) struct EventId<'a> {
    pub(crate) stream: u64,
    pub(crate) number: u64,
    pub(crate) ticket: Option<&'a str>,
}

impl<'a> EventId<'a> {
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.splitn(3, '.');
        let stream = u64::from_str_radix(parts.next()?, 16).ok()?;
        Some(Self { stream, number: parts.next()?.parse().ok()?, ticket: parts.next() })
    }
}

impl fmt::Display for EventId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}.{}", self.stream, self.number)?;
        self.ticket.map_or(Ok(()), |ticket| write!(f, ".{ticket}"))
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    fn listening(limits: &SessionLimits) -> (Arc<MessageStream>, StreamReader) {
        let stream = Arc::new(MessageStream::new(1, StreamKind::Listening, limits));
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
}
