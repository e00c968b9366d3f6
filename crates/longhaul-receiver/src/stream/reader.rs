//! The reader half of a stream, for transports.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use longhaul_wire::jsonrpc::RequestId;

use super::kept::STREAM_BYTES;
use super::{MessageStream, StreamKind, StreamState};

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
    /// The sealed name of the request that the stream answers, for a process that does not have the stream.
    pub(crate) pending_answer: Option<String>,
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
    pub(super) fn new(stream: Arc<MessageStream>, number: u64) -> Self {
        Self { stream, number, resumption: None }
    }

    /// The next message and its number; `None` after the last one, or if another reader has replaced this one.
    pub async fn next(&mut self) -> Option<(u64, Arc<str>)> {
        let limits = &self.stream.limits;
        self.look_until(|state| {
            if state.reader != self.number {
                return Some(None);
            }
            let index = usize::try_from(state.next - state.first).unwrap_or(usize::MAX);
            if let Some(message) = state.kept.get(index) {
                let read = (state.next, Arc::clone(&message.text));
                state.next += 1;
                state.trim(limits);
                return Some(Some(read));
            }
            state.is_over().then(|| {
                state.is_drained = true;
                None
            })
        })
        .await
    }

    /// Looks at the stream now and whenever a message was added, until `look` returns something.
    async fn look_until<T>(&self, look: impl Fn(&mut StreamState) -> Option<T>) -> T {
        let stream = &self.stream;
        loop {
            let added = stream.message_added.notified();
            tokio::pin!(added);
            added.as_mut().enable();
            let found = look(&mut stream.state.lock());
            if let Some(found) = found {
                stream.message_read.notify_waiters();
                return found;
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
        self.look_until(|state| {
            if state.kept.iter().any(|message| !message.is_response) {
                return Some(None);
            }
            state.is_over().then(|| {
                state.is_drained = true;
                state.next = state.end();
                Some(state.kept.iter().map(|message| Arc::clone(&message.text)).collect())
            })
        })
        .await
    }

    /// Makes the stream one that its client can resume by event IDs.
    pub(crate) fn resumable(mut self, resumption: Resumption) -> Self {
        self.resumption = Some(resumption);
        self
    }

    /// The sealed name of what the stream answers, made by `seal` the first time.
    pub(crate) fn pending_answer(&self, seal: impl FnOnce(&StreamKind) -> Option<String>) -> Option<String> {
        self.stream.pending_answer.get_or_init(|| seal(&self.stream.kind)).clone()
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
        let id = EventId { stream: self.stream.id, number, pending_answer: resumption.pending_answer.as_deref() };
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
        let stream = &self.stream;
        let is_stateless = self.stateless_request().is_some();
        let share = if stream.is_resumable() { stream.kept.take(STREAM_BYTES) } else { None };
        // Without memory the stream ends. The client gets a task's result by its last event ID, which names the request.
        let is_over = is_stateless || (stream.is_resumable() && share.is_none());
        {
            let mut state = stream.state.lock();
            if state.reader != self.number {
                return;
            }
            state.unread_since = Some(Instant::now());
            if share.is_some() && !state.is_closed {
                state.unread_share = share;
                state.place = state.place.or_else(|| Some(stream.kept.add(&stream.this)));
            }
            state.trim(&stream.limits);
        }
        if is_over {
            stream.close();
            return;
        }
        stream.message_read.notify_waiters();
        stream.reader_changed();
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
    pub(crate) pending_answer: Option<&'a str>,
}

impl<'a> EventId<'a> {
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.splitn(3, '.');
        let stream = u64::from_str_radix(parts.next()?, 16).ok()?;
        Some(Self { stream, number: parts.next()?.parse().ok()?, pending_answer: parts.next() })
    }
}

impl fmt::Display for EventId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}.{}", self.stream, self.number)?;
        self.pending_answer.map_or(Ok(()), |pending_answer| write!(f, ".{pending_answer}"))
    }
}
