//! One stream of messages to a client: the answer to what it sent, or what it opened to listen.
//!
//! A stream outlives its connection. What was said is kept for a while, within limits, so that whoever lost the
//! connection goes on where it broke; what comes meanwhile waits there.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use longhaul_task::TaskId;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::SessionLimits;
use super::ticket::Awaited;

/// Is told of which task a stream tells that can be heard from now on, or no longer.
type Moved = dyn Fn(Option<&TaskId>) + Send + Sync;

/// A stream of messages, numbered from one.
pub(crate) struct Channel {
    id: u64,
    limits: SessionLimits,
    state: Mutex<State>,
    /// Wakes the reader.
    news: Notify,
    /// Wakes whoever waits for the reader.
    taken: Notify,
    /// The stream is over, whatever was still to come.
    closed: CancellationToken,
    /// Called when it can be heard from now on, or no longer.
    moved: Box<Moved>,
    /// What it is to answer, if that is one thing.
    awaits: OnceLock<Awaited>,
    /// The name for that, once it was needed: an event has the same one however often it is sent.
    ticket: OnceLock<Option<String>>,
}

struct State {
    kept: VecDeque<Said>,
    /// The number of the first message that is kept.
    first: u64,
    bytes: usize,
    /// How many responses are still to come; a stream that was opened to listen has none and does not end by itself.
    awaited: Option<usize>,
    is_closed: bool,
    /// Which reader is the present one.
    reader: u64,
    /// The number of the message that it takes next.
    next: u64,
    /// Since when nobody reads.
    alone_since: Option<Instant>,
    /// A reader has got to the end.
    is_drained: bool,
    /// Its messages went out one by one, under numbers that a client can come back with.
    is_streamed: bool,
}

struct Said {
    text: Arc<str>,
    is_response: bool,
}

impl State {
    fn is_over(&self) -> bool {
        self.is_closed || self.awaited == Some(0)
    }

    fn end(&self) -> u64 {
        self.first + self.kept.len() as u64
    }

    fn push(&mut self, text: &str, is_response: bool, limits: &SessionLimits) {
        self.bytes += text.len();
        self.kept.push_back(Said { text: text.into(), is_response });
        self.trim(limits);
    }

    /// Lets go of what is past the limits, but of nothing that a present reader has not had yet.
    fn trim(&mut self, limits: &SessionLimits) {
        while (self.kept.len() > limits.kept_messages_max || self.bytes > limits.kept_bytes_max)
            && (self.first < self.next || self.alone_since.is_some())
            && let Some(said) = self.kept.pop_front()
        {
            self.bytes -= said.text.len();
            self.first += 1;
        }
    }
}

impl Channel {
    /// The stream that carries so many responses, or one to listen on.
    pub(super) fn new(id: u64, awaited: Option<usize>, limits: &SessionLimits) -> Self {
        Self {
            id,
            limits: limits.clone(),
            state: Mutex::new(State {
                kept: VecDeque::new(),
                first: 1,
                bytes: 0,
                awaited,
                is_closed: false,
                reader: 0,
                next: 1,
                alone_since: None,
                is_drained: false,
                is_streamed: awaited.is_none(),
            }),
            news: Notify::new(),
            taken: Notify::new(),
            closed: CancellationToken::new(),
            moved: Box::new(|_| ()),
            awaits: OnceLock::new(),
            ticket: OnceLock::new(),
        }
    }

    /// The same, which tells when it can be heard and when no longer.
    pub(super) fn tells(mut self, moved: impl Fn(Option<&TaskId>) + Send + Sync + 'static) -> Self {
        self.moved = Box::new(moved);
        self
    }

    /// Says what it is to answer.
    pub(super) fn awaits(&self, awaited: Awaited) {
        // It is said once, when the stream is made.
        let _ = self.awaits.set(awaited);
    }

    fn tell_moved(&self) {
        (self.moved)(self.awaits.get().and_then(|awaited| awaited.task.as_ref()));
    }

    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// Says something, when its reader has kept up with what was said before; says whether the stream was still there.
    pub(super) async fn say(&self, text: String) -> bool {
        loop {
            let taken = self.taken.notified();
            tokio::pin!(taken);
            taken.as_mut().enable();
            {
                let mut state = self.state.lock();
                if state.is_over() {
                    return false;
                }
                let unread = state.end().saturating_sub(state.next);
                if state.alone_since.is_some() || unread < self.limits.unread_messages_max as u64 {
                    state.push(&text, false, &self.limits);
                    break;
                }
            }
            taken.await;
        }
        self.news.notify_waiters();
        true
    }

    /// Says something that need not be heard, if it can be said at once; says whether it could.
    pub(super) fn mention(&self, text: &str) -> bool {
        let mut state = self.state.lock();
        let is_heard = !state.is_over() && state.alone_since.is_none();
        if is_heard {
            state.push(text, false, &self.limits);
            drop(state);
            self.news.notify_waiters();
        }
        is_heard
    }

    /// Says something that may be lost, unless its reader is behind.
    pub(super) fn offer(&self, text: &str) {
        let mut state = self.state.lock();
        let unread = state.end().saturating_sub(state.next);
        if !state.is_over() && state.alone_since.is_none() && unread < self.limits.unread_messages_max as u64 {
            state.push(text, false, &self.limits);
            drop(state);
            self.news.notify_waiters();
        }
    }

    /// Answers one of the requests that it carries; with nothing, when that was cancelled.
    pub(super) fn respond(&self, text: Option<&str>) {
        let mut state = self.state.lock();
        if !state.is_over() {
            if let Some(text) = text {
                state.push(text, true, &self.limits);
            }
            state.awaited = state.awaited.map(|awaited| awaited.saturating_sub(1));
        }
        let is_over = state.is_over();
        drop(state);
        self.news.notify_waiters();
        if is_over {
            self.tell_moved();
        }
    }

    /// Ends it, whatever was still to come.
    pub(super) fn close(&self) {
        self.state.lock().is_closed = true;
        self.closed.cancel();
        self.news.notify_waiters();
        self.taken.notify_waiters();
        self.tell_moved();
    }

    /// Resolves when it was closed before its end.
    pub(super) async fn closed(&self) {
        self.closed.cancelled().await;
    }

    /// Whether somebody hears what is said now.
    pub(super) fn is_heard(&self) -> bool {
        let state = self.state.lock();
        !state.is_over() && state.alone_since.is_none()
    }

    /// Whether nobody has been reading for so long.
    pub(super) fn is_left_for(&self, time: Duration) -> bool {
        self.state.lock().alone_since.is_some_and(|since| since.elapsed() >= time)
    }

    /// Whether a reader has got to the end, so that nobody can come back for more.
    pub(super) fn is_done(&self) -> bool {
        let state = self.state.lock();
        state.is_drained && !state.is_streamed
    }

    /// Resolves when everything was handed over, or nobody is there to take it.
    pub(super) async fn handed_over(&self) {
        loop {
            let taken = self.taken.notified();
            tokio::pin!(taken);
            taken.as_mut().enable();
            {
                let state = self.state.lock();
                if state.is_drained || state.is_closed || state.alone_since.is_some() {
                    return;
                }
            }
            taken.await;
        }
    }

    /// Begins to read after the message of that number; `None` when what comes next is not there any more, or not yet.
    /// Another reader ends.
    pub(super) fn read_after(self: &Arc<Self>, number: u64) -> Option<Reader> {
        let reader = {
            let mut state = self.state.lock();
            let next = number.checked_add(1)?;
            if state.is_closed || next < state.first || next > state.end() {
                return None;
            }
            state.reader += 1;
            state.next = next;
            state.alone_since = None;
            Reader { channel: Arc::clone(self), number: state.reader }
        };
        self.news.notify_waiters();
        self.tell_moved();
        Some(reader)
    }

    /// The same for a stream that goes out message by message from the start.
    pub(super) fn stream_after(self: &Arc<Self>, number: u64) -> Option<Reader> {
        self.state.lock().is_streamed = true;
        self.read_after(number)
    }
}

/// Reads a stream.
pub struct Reader {
    channel: Arc<Channel>,
    number: u64,
}

/// How the messages of a stream go out.
pub enum Delivery {
    /// They are answers and nothing else, and all of them are here.
    Answers(Vec<Arc<str>>),
    /// One after the other.
    Stream(Reader),
}

impl Reader {
    /// The next message and its number; none after the last. Whoever asks has dealt with the one before.
    pub async fn next(&mut self) -> Option<(u64, Arc<str>)> {
        let channel = &self.channel;
        loop {
            let news = channel.news.notified();
            tokio::pin!(news);
            news.as_mut().enable();
            {
                let mut state = channel.state.lock();
                if state.reader != self.number {
                    return None;
                }
                let place = usize::try_from(state.next - state.first).unwrap_or(usize::MAX);
                if let Some(said) = state.kept.get(place) {
                    let text = Arc::clone(&said.text);
                    let number = state.next;
                    state.next += 1;
                    state.trim(&channel.limits);
                    drop(state);
                    channel.taken.notify_waiters();
                    return Some((number, text));
                }
                if state.is_over() {
                    state.is_drained = true;
                    drop(state);
                    channel.taken.notify_waiters();
                    return None;
                }
            }
            news.await;
        }
    }

    /// Decides how the messages go out: all at once, if there are only answers and they come soon.
    pub async fn delivery(self, patience: Duration) -> Delivery {
        if let Ok(Some(answers)) = tokio::time::timeout(patience, self.only_answers()).await {
            return Delivery::Answers(answers);
        }
        self.channel.state.lock().is_streamed = true;
        Delivery::Stream(self)
    }

    async fn only_answers(&self) -> Option<Vec<Arc<str>>> {
        let channel = &self.channel;
        loop {
            let news = channel.news.notified();
            tokio::pin!(news);
            news.as_mut().enable();
            {
                let mut state = channel.state.lock();
                if state.kept.iter().any(|said| !said.is_response) {
                    return None;
                }
                if state.is_over() {
                    state.is_drained = true;
                    state.next = state.end();
                    let answers = state.kept.iter().map(|said| Arc::clone(&said.text)).collect();
                    drop(state);
                    channel.taken.notify_waiters();
                    return Some(answers);
                }
            }
            news.await;
        }
    }

    /// The number of the last message that it has had, or was said to have had.
    pub fn seen(&self) -> u64 {
        self.channel.state.lock().next.saturating_sub(1)
    }

    /// The name for what the stream is to answer, made the first time that somebody wants it.
    pub(super) fn ticket(&self, make: impl FnOnce(&Awaited) -> Option<String>) -> Option<&str> {
        self.channel.ticket.get_or_init(|| make(self.channel.awaits.get()?)).as_deref()
    }

    /// What the messages' numbers count within.
    pub fn stream(&self) -> u64 {
        self.channel.id
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        {
            let mut state = self.channel.state.lock();
            if state.reader != self.number {
                return;
            }
            state.alone_since = Some(Instant::now());
            state.trim(&self.channel.limits);
        }
        self.channel.taken.notify_waiters();
        self.channel.tell_moved();
    }
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("stream", &self.channel.id).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    fn listening(limits: &SessionLimits) -> (Arc<Channel>, Reader) {
        let channel = Arc::new(Channel::new(1, None, limits));
        let reader = channel.read_after(0).unwrap();
        (channel, reader)
    }

    async fn read(reader: &mut Reader, count: usize) -> Vec<String> {
        let mut texts = Vec::new();
        for _ in 0..count {
            texts.push(reader.next().await.unwrap().1.to_string());
        }
        texts
    }

    /// Says something, has it read, and loses the connection.
    async fn say_all(limits: &SessionLimits, texts: &[&str]) -> Arc<Channel> {
        let (channel, mut reader) = listening(limits);
        for text in texts {
            assert!(channel.say((*text).to_owned()).await);
            assert_eq!(read(&mut reader, 1).await, [*text]);
        }
        channel
    }

    #[tokio::test]
    async fn so_many_messages_are_kept_and_the_oldest_goes() {
        let limits = SessionLimits { kept_messages_max: 2, ..SessionLimits::default() };
        let channel = say_all(&limits, &["a", "b"]).await;
        assert_eq!(read(&mut channel.read_after(0).unwrap(), 2).await, ["a", "b"]);
        let channel = say_all(&limits, &["a", "b", "c"]).await;
        assert!(channel.read_after(0).is_none(), "what comes next is not kept");
        assert_eq!(read(&mut channel.read_after(1).unwrap(), 2).await, ["b", "c"]);
    }

    #[tokio::test]
    async fn so_many_bytes_are_kept_and_the_oldest_go() {
        let limits = SessionLimits { kept_bytes_max: 10, ..SessionLimits::default() };
        let channel = say_all(&limits, &["aaaaa", "bbbbb"]).await;
        assert_eq!(read(&mut channel.read_after(0).unwrap(), 2).await, ["aaaaa", "bbbbb"]);
        let channel = say_all(&limits, &["aaaaa", "bbbbb", "c"]).await;
        assert!(channel.read_after(0).is_none(), "what comes next is not kept");
        assert_eq!(read(&mut channel.read_after(1).unwrap(), 2).await, ["bbbbb", "c"]);
    }

    #[tokio::test]
    async fn what_a_present_reader_has_not_had_is_kept_whatever_its_size() {
        let limits = SessionLimits { kept_bytes_max: 1, kept_messages_max: 0, ..SessionLimits::default() };
        let (channel, mut reader) = listening(&limits);
        assert!(channel.say("long".to_owned()).await && channel.say("longer".to_owned()).await);
        assert_eq!(read(&mut reader, 2).await, ["long", "longer"]);
    }

    #[tokio::test]
    async fn whoever_says_more_than_a_reader_takes_waits_for_it() {
        let limits = SessionLimits { unread_messages_max: 2, ..SessionLimits::default() };
        let (channel, mut reader) = listening(&limits);
        assert!(channel.say("a".to_owned()).await && channel.say("b".to_owned()).await);
        let mut third = pin!(channel.say("c".to_owned()));
        assert!(third.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        assert_eq!(read(&mut reader, 1).await, ["a"]);
        assert!(third.await);
        assert_eq!(read(&mut reader, 2).await, ["b", "c"]);
    }
}
