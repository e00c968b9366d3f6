//! The messages of a session's client: requests, notifications, responses, batches of them.

use std::sync::Arc;
use std::time::Duration;

use longhaul_engine::audit::{self as record, RequestSource};
use longhaul_task::TaskKey;
use longhaul_wire::jsonrpc::{self, InvalidMessage, Message, RequestId, RpcError};
use longhaul_wire::route::{Context, generation_of, route};
use longhaul_wire::{ClientNotification, Generation, Headers};
use tokio::time::timeout;

use super::Session;
use crate::operation::{self, OperationResult, StreamWork};
use crate::response::MetricsLabel;
use crate::stream::{Delivery, MessageStream, StreamKind};
use crate::{MessageResponse, RequestKind, SOON_MS, audit};

/// How long a client waits until its answer to a question is stored.
const ANSWER_STORED_TIME_MAX: Duration = Duration::from_secs(15);

/// How a transport delivers responses that take time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResponseDelivery {
    /// How long a response may take before its stream is opened. Proxies and clients give up on a silent connection.
    pub(crate) patience: Duration,
    /// Whether the responses to a batch are one message, however late, also if other messages precede them.
    pub(crate) joins_batches: bool,
}

/// What a request has led to.
enum RequestStart {
    Ready(String),
    OnStream(Arc<MessageStream>),
}

impl Session {
    /// Processes one body that the client sent: a message or a batch. `headers` are the HTTP headers, if there are any.
    pub(crate) async fn receive(
        self: &Arc<Self>,
        headers: Option<&(dyn Headers + Sync)>,
        body: &[u8],
        delivery: ResponseDelivery,
    ) -> MessageResponse {
        self.touch();
        if self.peer.revision.has_batches() && jsonrpc::is_batch(body) {
            return match jsonrpc::parse_batch(body) {
                Ok(messages) => self.receive_batch(messages, delivery).await,
                Err(rejected) => self.reject(&rejected),
            };
        }
        match jsonrpc::parse(body) {
            Ok(Message::Request(request)) => {
                let tally = MetricsLabel::of(&request.method);
                match self.start(&request, headers, None).await {
                    Ok(RequestStart::Ready(text)) => MessageResponse::message(text, tally),
                    Ok(RequestStart::OnStream(stream)) => self.respond(&stream, delivery.patience, tally).await,
                    Err(error) => MessageResponse::error(Some(&request.id), &error, tally),
                }
            }
            Ok(other) => match timeout(ANSWER_STORED_TIME_MAX, self.receive_without_response(&other)).await {
                Ok(()) => MessageResponse::accepted(),
                Err(_) => not_stored(),
            },
            Err(rejected) => self.reject(&rejected),
        }
    }

    /// Takes several messages, each by itself. Their responses are sent together.
    async fn receive_batch(
        self: &Arc<Self>,
        messages: Vec<Result<Message<'_>, InvalidMessage>>,
        delivery: ResponseDelivery,
    ) -> MessageResponse {
        let wants_response =
            |message: &&Result<_, _>| !matches!(message, Ok(Message::Notification(_) | Message::Response(_)));
        let responses = messages.iter().filter(wants_response).count();
        if responses == 0 {
            for message in messages.iter().flatten() {
                self.receive_without_response(message).await;
            }
            return MessageResponse::accepted();
        }
        let stream = self.add_stream(StreamKind::Batch { responses, is_joined: delivery.joins_batches });
        for message in messages {
            match message {
                Ok(Message::Request(request)) => match self.start(&request, None, Some(&stream)).await {
                    Ok(RequestStart::Ready(text)) => stream.respond(Some(&text)),
                    Ok(RequestStart::OnStream(_)) => {}
                    Err(error) => stream.respond(Some(&jsonrpc::error(Some(&request.id), &error))),
                },
                Ok(other) => self.receive_without_response(&other).await,
                Err(rejected) => {
                    stream.respond(Some(&jsonrpc::error(rejected.id.as_ref(), &self.rejection(&rejected))));
                }
            }
        }
        let response = self.respond(&stream, delivery.patience, MetricsLabel::Nothing).await;
        self.drop_stream_when_read(stream);
        response
    }

    /// Delivers the responses of a stream at once if they are there in time, and opens the stream otherwise.
    async fn respond(
        self: &Arc<Self>,
        stream: &Arc<MessageStream>,
        patience: Duration,
        tally: MetricsLabel,
    ) -> MessageResponse {
        // A stream without a reader belongs to a session that has just ended.
        let Some(reader) = stream.read_after(0) else { return MessageResponse::accepted() };
        match reader.delivery(patience).await {
            Delivery::Stream(reader) => MessageResponse::stream(self.resumable(reader), tally),
            Delivery::Responses(responses) => {
                let is_whole = responses.len() == 1 && !stream.is_divided_batch();
                let message = if is_whole { responses.concat().into() } else { jsonrpc::batch(&responses) };
                message.map_or_else(
                    || MessageResponse::empty_stream(tally),
                    |message| MessageResponse::message(message, tally),
                )
            }
        }
    }

    fn reject(&self, rejected: &InvalidMessage) -> MessageResponse {
        let error = self.rejection(rejected);
        MessageResponse::error(rejected.id.as_ref(), &error, MetricsLabel::Refused)
    }

    /// The error for bytes that are no message. They count against the owner's rate like a request.
    fn rejection(&self, rejected: &InvalidMessage) -> RpcError {
        let too_many = self.receiver.rates.admit(&self.owner, RequestKind::Other).err();
        let error = too_many.unwrap_or_else(|| rejected.error.clone());
        audit::not_a_message(&self.owner, generation_of(self.peer.revision), &error);
        error
    }

    /// Answers a request, or begins to work on it: on the stream of its batch, or on one of its own.
    async fn start(
        self: &Arc<Self>,
        request: &jsonrpc::Request<'_>,
        headers: Option<&(dyn Headers + Sync)>,
        batch: Option<&Arc<MessageStream>>,
    ) -> Result<RequestStart, RpcError> {
        let started = self.try_start(request, headers, batch).await;
        if let Err(error) = &started {
            audit::refused(&self.owner, generation_of(self.peer.revision), request, error);
        }
        started
    }

    async fn try_start(
        self: &Arc<Self>,
        request: &jsonrpc::Request<'_>,
        headers: Option<&(dyn Headers + Sync)>,
        batch: Option<&Arc<MessageStream>>,
    ) -> Result<RequestStart, RpcError> {
        self.receiver.rates.admit(&self.owner, RequestKind::of(&request.method))?;
        let last_marker = *self.last_marker.lock();
        let (peer, is_restored) = (self.peer, self.is_restored);
        let request = route(request, &Context::Session { peer, last_marker, is_restored })?;
        if request.marker.is_some() {
            *self.last_marker.lock() = request.marker;
        }
        let exchange = self.exchange(request.id.clone(), request.generation, request.follows_task, request.method);
        match operation::perform(&exchange, &request, headers).await? {
            OperationResult::Ready(response) => Ok(RequestStart::Ready(response)),
            OperationResult::Work(work) => self.carry_out(work, batch).map(RequestStart::OnStream),
        }
    }

    /// Takes a message that gets no response.
    async fn receive_without_response(self: &Arc<Self>, message: &Message<'_>) {
        match message {
            Message::Response(response) => self.take_response(response).await,
            Message::Notification(notification) => match ClientNotification::read(notification) {
                ClientNotification::Cancelled(cancelled) => self.cancel_request(&cancelled.request_id).await,
                ClientNotification::TaskStatus(task) => {
                    // Counted first: a wait that begins now reads the count after it has registered itself.
                    self.remote_task_notices.send_modify(|count| *count += 1);
                    if let Some(changed) = self.remote_tasks.lock().get(&task.id) {
                        changed.notify_one();
                    }
                }
                ClientNotification::Initialized
                | ClientNotification::Progress(_)
                | ClientNotification::RootsChanged
                | ClientNotification::Ignored => {}
            },
            Message::Request(_) => {}
        }
    }

    /// Ends a request without a response, and the task that it created if `register_creation` was called for it.
    async fn cancel_request(&self, id: &RequestId) {
        let created = self.take_creation(id);
        if let Some(cancel) = self.requests.lock().get(id) {
            cancel.cancel();
        }
        // Again, because the request may have named its task meanwhile.
        if let Some(task) = created.or_else(|| self.take_creation(id)) {
            self.cancel_created(&task).await;
        }
    }

    /// Cancels a task because the request that created it was cancelled. A task that has ended stays as it is.
    pub(crate) async fn cancel_created(&self, task: &TaskKey) {
        match self.receiver.engine.cancel(task, None).await {
            Ok(cancelled) => {
                let label = Generation::of_label(&cancelled.origin).map_or("", |generation| generation.label());
                let source = RequestSource { owner: &self.owner, generation: label, method: "notifications/cancelled" };
                record::cancelled(source, &task.id, true);
            }
            Err(error) => tracing::debug!(task = %task.id, %error, "the task of a cancelled request goes on"),
        }
    }

    /// Works on a request in the background. A client that disconnects does not end the work: it can come back for the
    /// response.
    pub(super) fn carry_out(
        self: &Arc<Self>,
        work: StreamWork,
        batch: Option<&Arc<MessageStream>>,
    ) -> Result<Arc<MessageStream>, RpcError> {
        let StreamWork { exchange, task, creation, call, tool, run } = work;
        let id = exchange.id.clone();
        let cancel = self.begin_request(&id)?;
        if let Some(creation) = creation {
            self.register_creation(&id, creation);
        }
        let is_own = batch.is_none();
        let own_stream = || {
            let (request, method, generation) = (id.clone(), exchange.method, exchange.generation);
            self.add_stream(StreamKind::SessionRequest { request, method, generation, task: task.clone(), call })
        };
        let stream = batch.map_or_else(own_stream, Arc::clone);
        let (session, carrier) = (Arc::clone(self), Arc::clone(&stream));
        let running = run(Arc::clone(&stream));
        self.receiver.tracker.spawn(async move {
            let completed = tokio::select! {
                // After a cancellation nothing more is sent.
                biased;
                () = cancel.cancelled() => None,
                () = carrier.closed() => None,
                completed = running => Some(completed),
            };
            // Before the ID is free again. A request that was cancelled leaves this to its cancellation.
            if completed.is_some() {
                session.take_creation(&id);
            }
            session.requests.lock().remove(&id);
            session.touch();
            let created = match completed {
                None => {
                    carrier.respond(None);
                    None
                }
                Some(Ok(completed)) => {
                    carrier.respond(completed.response.as_deref());
                    completed.created
                }
                Some(Err(error)) => {
                    audit::work_failed(&exchange, task.as_ref(), tool.as_deref(), &error);
                    carrier.respond(Some(&jsonrpc::error(Some(&id), &error)));
                    None
                }
            };
            if let Some(created) = created {
                // The client must not hear of a task before it has received the response that creates it.
                carrier.read_to_end().await;
                session.follow(created, false);
            }
            if is_own {
                session.drop_stream_when_read(carrier);
            }
        });
        Ok(stream)
    }
}

/// The response to an answer that is not stored yet. It is not lost: storing is retried.
fn not_stored() -> MessageResponse {
    let error = RpcError::try_later("NOT_STORED", "the answer could not be stored in time; it is tried on", SOON_MS);
    MessageResponse::error(None, &error.with_status(503), MetricsLabel::Refused)
}
