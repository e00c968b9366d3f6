//! The streams of one session, and which of them carries a message about a task.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use longhaul_task::TaskId;

use super::Session;
use crate::stream::{EventId, MessageStream, StreamKind, StreamReader};

#[derive(Default)]
pub(super) struct Streams {
    /// Every stream that can be resumed, by its ID.
    all: HashMap<u64, Arc<MessageStream>>,
    /// IDs of the streams in `all` that have ended, the newest last.
    ended: VecDeque<u64>,
    /// Streams that the client listens on, the newest last.
    listening: Vec<Arc<MessageStream>>,
    /// Streams that wait for a task's result, the newest last.
    waiting_for_result: HashMap<TaskId, Vec<Arc<MessageStream>>>,
}

impl Streams {
    pub(super) fn is_listened_to(&self) -> bool {
        self.listening.iter().any(|stream| stream.has_reader())
    }

    pub(super) fn has_reader(&self) -> bool {
        self.all.values().any(|stream| stream.has_reader())
    }
}

impl Session {
    /// Continues the stream of the last event that the client received: the one in memory, or a new one for what a stream
    /// of an earlier process answered. If neither is possible, the client gets a new stream to listen on.
    pub(crate) async fn resume_or_listen(self: &Arc<Self>, last_event: Option<EventId<'_>>) -> Option<StreamReader> {
        let resumed = match &last_event {
            None => None,
            Some(last) => match (self.resume(last.stream, last.number), last.pending_answer) {
                (None, Some(pending_answer)) => self.resume_lost(pending_answer).await,
                (resumed, _) => resumed,
            },
        };
        resumed.or_else(|| self.listen())
    }

    /// Opens a stream for the client to listen on. Past the limit the oldest one is closed.
    pub(crate) fn listen(self: &Arc<Self>) -> Option<StreamReader> {
        let session = Arc::downgrade(self);
        let on_change = move |_: Option<&TaskId>| {
            if let Some(session) = session.upgrade() {
                session.reader_changed(None);
                session.send_changes();
            }
        };
        let stream = self.new_stream(StreamKind::Listening, on_change);
        let closed: Vec<_> = {
            let mut streams = self.streams.lock();
            streams.all.insert(stream.id(), Arc::clone(&stream));
            streams.listening.push(Arc::clone(&stream));
            let excess = streams.listening.len().saturating_sub(self.limits.listening_max.max(1));
            let oldest: Vec<_> = streams.listening.drain(..excess).collect();
            for stream in &oldest {
                streams.all.remove(&stream.id());
            }
            oldest
        };
        for stream in closed {
            stream.close();
        }
        let reader = stream.read_after(0);
        if self.ended.is_cancelled() {
            stream.close();
        }
        self.report_unreported(&stream);
        reader
    }

    /// Continues a stream after the message of this number, if the stream is still in memory.
    fn resume(&self, stream: u64, after: u64) -> Option<StreamReader> {
        let stream = self.streams.lock().all.get(&stream).cloned()?;
        stream.read_after(after)
    }

    /// Adds a stream for the response to a request, or to a batch of them.
    pub(super) fn add_stream(self: &Arc<Self>, kind: StreamKind) -> Arc<MessageStream> {
        let session = Arc::downgrade(self);
        // If the stream breaks, the messages about a task that were sent on it must be sent on another one.
        let on_change = move |task: Option<&TaskId>| {
            if let (Some(task), Some(session)) = (task, session.upgrade()) {
                session.reader_changed(Some(task));
            }
        };
        let stream = self.new_stream(kind, on_change);
        self.streams.lock().all.insert(stream.id(), Arc::clone(&stream));
        stream
    }

    fn new_stream(
        &self,
        kind: StreamKind,
        on_change: impl Fn(Option<&TaskId>) + Send + Sync + 'static,
    ) -> Arc<MessageStream> {
        let kept = self.receiver.kept.of(&self.owner);
        MessageStream::new(self.receiver.random_number(), kind, &self.limits, kept, on_change)
    }

    pub(super) fn drop_stream(&self, stream: &MessageStream) {
        self.streams.lock().all.remove(&stream.id());
    }

    /// Keeps a stream that has ended, so that its client can resume it. Past the limit the oldest of these is dropped.
    fn keep_ended_stream(&self, stream: &MessageStream) {
        let mut streams = self.streams.lock();
        streams.ended.push_back(stream.id());
        if streams.ended.len() > self.limits.ended_streams_max
            && let Some(oldest) = streams.ended.pop_front()
        {
            streams.all.remove(&oldest);
        }
    }

    /// Drops a stream when its client has received all of it. A stream of events is kept for a while, because its last
    /// events may be lost with the connection.
    pub(super) fn drop_stream_when_read(self: &Arc<Self>, stream: Arc<MessageStream>) {
        let session = Arc::clone(self);
        self.receiver.tracker.spawn(async move {
            stream.read_to_end().await;
            if stream.is_delivered_whole() {
                session.drop_stream(&stream);
            } else {
                session.keep_ended_stream(&stream);
            }
        });
    }

    /// Marks a stream as waiting for a task's result until the returned guard is dropped.
    pub(crate) fn wait_for_result(self: &Arc<Self>, id: &TaskId, stream: &Arc<MessageStream>) -> ResultWait {
        self.streams.lock().waiting_for_result.entry(id.clone()).or_default().push(Arc::clone(stream));
        self.reader_changed(Some(id));
        ResultWait { session: Arc::clone(self), id: id.clone(), stream: Arc::clone(stream) }
    }

    /// The stream for a message about a task: one that waits for its result, else the newest one that the client
    /// listens on. One published client reads only the former and one only the latter; a message on both would be taken
    /// for two messages.
    /// If there is neither, a child's messages go onto the stream that waits for its parent: a client without a stream to
    /// listen on would never be asked.
    pub(super) fn stream_for(&self, id: &TaskId) -> Option<Arc<MessageStream>> {
        let parent = self.followed.lock().get(id).and_then(|task| task.parent().cloned());
        self.own_stream_for(id).or_else(|| self.stream_for(&parent?))
    }

    fn own_stream_for(&self, id: &TaskId) -> Option<Arc<MessageStream>> {
        let streams = self.streams.lock();
        let waiting = streams.waiting_for_result.get(id).into_iter().flatten();
        let has_reader = |stream: &&Arc<MessageStream>| stream.has_reader();
        waiting.rev().find(has_reader).or_else(|| streams.listening.iter().rev().find(has_reader)).cloned()
    }

    /// The newest stream that the client listens on.
    pub(super) fn listening_stream(&self) -> Option<Arc<MessageStream>> {
        self.streams.lock().listening.iter().rev().find(|stream| stream.has_reader()).cloned()
    }

    /// Any stream with a reader, preferably one that the client listens on.
    pub(super) fn any_stream(&self) -> Option<Arc<MessageStream>> {
        let streams = self.streams.lock();
        let has_reader = |stream: &&Arc<MessageStream>| stream.has_reader();
        streams.listening.iter().rev().find(has_reader).or_else(|| streams.all.values().find(has_reader)).cloned()
    }

    /// Tells the followers of a task (`None`: of all tasks) that their messages may have to go onto another stream.
    fn reader_changed(&self, task: Option<&TaskId>) {
        let followed = self.followed.lock();
        match task {
            Some(id) => {
                let concerned = followed.iter().filter(|(other, task)| *other == id || task.parent() == Some(id));
                concerned.for_each(|(_, task)| task.check_again());
            }
            None => followed.values().for_each(|task| task.check_again()),
        }
        drop(followed);
        self.reader_changes.send_modify(|count| *count += 1);
    }

    /// Closes the streams that wait for a result and have no reader.
    pub(super) fn close_abandoned_waits(&self) {
        let is_abandoned = |stream: &&Arc<MessageStream>| !stream.has_reader();
        let abandoned: Vec<_> =
            self.streams.lock().waiting_for_result.values().flatten().filter(is_abandoned).cloned().collect();
        for stream in abandoned {
            stream.close();
        }
    }

    /// Closes the streams that the client listens on, which would not end by themselves.
    pub(crate) fn stop_listening(&self) {
        let listening = std::mem::take(&mut self.streams.lock().listening);
        for stream in listening {
            stream.close();
        }
    }

    pub(super) fn close_streams(&self) {
        let streams = std::mem::take(&mut *self.streams.lock());
        for stream in streams.all.into_values().chain(streams.listening) {
            stream.close();
        }
    }

    /// Closes the streams whose clients did not come back in time.
    pub(crate) fn close_broken_streams(&self) {
        let broken: Vec<_> = {
            let mut streams = self.streams.lock();
            let is_broken = |stream: &Arc<MessageStream>| stream.is_unread_for(self.limits.broken_time_max);
            streams.listening.retain(|stream| !is_broken(stream));
            let broken: Vec<_> = streams.all.extract_if(|_, stream| is_broken(stream)).collect();
            streams.ended.retain(|id| broken.iter().all(|(other, _)| id != other));
            broken
        };
        for (_, stream) in broken {
            stream.close();
        }
    }
}

/// Marks a stream as waiting for a task's result until it is dropped.
pub(crate) struct ResultWait {
    session: Arc<Session>,
    id: TaskId,
    stream: Arc<MessageStream>,
}

impl Drop for ResultWait {
    fn drop(&mut self) {
        let mut streams = self.session.streams.lock();
        if let Some(waiting) = streams.waiting_for_result.get_mut(&self.id) {
            if let Some(index) = waiting.iter().position(|stream| Arc::ptr_eq(stream, &self.stream)) {
                waiting.remove(index);
            }
            if waiting.is_empty() {
                streams.waiting_for_result.remove(&self.id);
            }
        }
        drop(streams);
        self.session.reader_changed(Some(&self.id));
    }
}
