//! The entrance of pipes, such as standard input and output: one client, messages of both eras on one channel.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use longhaul_wire::jsonrpc::{self, Message, Notification, RequestId, RpcError};
use longhaul_wire::{CancelledRequest, ClientNotification, initialize, refusal as wire_refusal, route};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::operation::OperationResult;
use crate::receiver::ReceiverInner;
use crate::response::MetricsLabel;
use crate::session::{ResponseDelivery, Session};
use crate::stream::MessageStream;
use crate::{Caller, MessageResponse, Receiver, RequestKind, SessionLimits, audit, entrance, refusal, stateless};

/// The next message is read at once, whatever the responses take: it may cancel a request.
const DELIVERY: ResponseDelivery = ResponseDelivery { patience: Duration::ZERO, joins_batches: true };

/// A client at the other end of a pipe. It has at most one session, which ends with the connection.
pub struct Connection {
    receiver: Arc<ReceiverInner>,
    caller: Caller,
    session: OnceLock<Arc<Session>>,
    requests_max: usize,
    /// Requests of the stateless era that have no response yet.
    requests: Arc<Mutex<HashMap<RequestId, CancellationToken>>>,
}

impl Receiver {
    /// A connection for one client, which may have so many requests open at once.
    pub fn connect(&self, caller: Caller, requests_max: usize) -> Connection {
        Connection {
            receiver: Arc::clone(&self.inner),
            caller,
            session: OnceLock::new(),
            requests_max,
            requests: Arc::default(),
        }
    }
}

impl Connection {
    /// Takes one message. Messages must be given in the order in which they arrived; what takes time is answered by a
    /// stream, which the transport reads beside the next messages.
    pub async fn receive(&self, message: Vec<u8>) -> MessageResponse {
        let parsed = jsonrpc::parse(&message);
        if !route::is_stateless(&message, None) {
            if let Some(session) = self.session.get() {
                if let Ok(Message::Notification(notification)) = &parsed {
                    self.cancel_by(notification);
                }
                return session.receive(None, &message, DELIVERY).await;
            }
            if let Ok(Message::Request(request)) = &parsed {
                return self.receive_before_session(request);
            }
        }
        match parsed {
            Ok(Message::Request(request)) => {
                let id = request.id;
                self.start(id, message)
            }
            Ok(Message::Notification(notification)) => {
                self.cancel_by(&notification);
                MessageResponse::accepted()
            }
            Ok(Message::Response(_)) => self.refuse(None, &RpcError::invalid_request(stateless::NO_RESPONSES)),
            Err(rejected) => self.refuse(rejected.id.as_ref(), &rejected.error),
        }
    }

    /// Answers a request that is not of the stateless era, before there is a session.
    fn receive_before_session(&self, request: &jsonrpc::Request<'_>) -> MessageResponse {
        if request.method == initialize::METHOD {
            return self.initialize(request);
        }
        let admitted = self.receiver.rates.admit(&self.caller.owner, RequestKind::of(&request.method));
        match (&*request.method, admitted) {
            (_, Err(too_many)) => self.refuse(Some(&request.id), &too_many),
            // The protocol allows it at any time.
            ("ping", Ok(())) => MessageResponse::message(jsonrpc::result(&request.id, "{}"), MetricsLabel::of("ping")),
            (_, Ok(())) => self.refuse(Some(&request.id), &wire_refusal::handshake_required()),
        }
    }

    /// Refuses a message that is longer than the transport takes.
    pub fn refuse_too_long(&self, bytes_max: usize) -> MessageResponse {
        self.refuse(None, &RpcError::invalid_request(&format!("a message has at most {bytes_max} bytes")))
    }

    fn refuse(&self, id: Option<&RequestId>, error: &RpcError) -> MessageResponse {
        audit::turned_away(Some(&self.caller.owner), error);
        MessageResponse::error(id, error, MetricsLabel::Refused)
    }

    fn initialize(&self, request: &jsonrpc::Request<'_>) -> MessageResponse {
        let (peer, answer) = match entrance::handshake(&self.receiver, &self.caller, request) {
            Ok(opened) => opened,
            Err(error) => return self.refuse(Some(&request.id), &error),
        };
        let limits = SessionLimits {
            requests_max: self.requests_max,
            // A pipe that broke does not come back.
            kept_messages_max: 0,
            ..self.receiver.options.sessions.clone()
        };
        let session = Session::new(Arc::clone(&self.receiver), None, &self.caller, peer, limits, false);
        self.receiver.sessions.add_pipe(&session);
        let reader = session.listen();
        // Messages are taken one at a time, so the session is not set yet.
        let _ = self.session.set(session);
        MessageResponse::message(answer, MetricsLabel::Nothing).listening_on(reader)
    }

    /// Answers a request of the stateless era beside the others.
    fn start(&self, id: RequestId, message: Vec<u8>) -> MessageResponse {
        let cancel = match self.begin_request(&id) {
            Ok(cancel) => cancel,
            Err(error) => return self.refuse(Some(&id), &error),
        };
        let stream = stateless::new_stream(&self.receiver, &self.caller, id.clone());
        let Some(reader) = stream.read_after(0) else { return MessageResponse::accepted() };
        let (receiver, caller, requests) =
            (Arc::clone(&self.receiver), self.caller.clone(), Arc::clone(&self.requests));
        self.receiver.tracker.spawn(async move {
            tokio::select! {
                // After a cancellation nothing more is sent. The cancellation has removed the request.
                biased;
                () = cancel.cancelled() => stream.close(),
                () = answer(&receiver, &caller, &message, &stream) => {
                    requests.lock().remove(&id);
                }
            }
        });
        MessageResponse::stream(reader, MetricsLabel::Nothing)
    }

    fn begin_request(&self, id: &RequestId) -> Result<CancellationToken, RpcError> {
        let mut requests = self.requests.lock();
        // Refused, and not made to wait: the next message may be the one that cancels an open request.
        if requests.len() >= self.requests_max {
            return Err(refusal::too_many_in_flight());
        }
        match requests.entry(id.clone()) {
            Entry::Occupied(_) => Err(refusal::request_id_in_use()),
            Entry::Vacant(entry) => Ok(entry.insert(CancellationToken::new()).clone()),
        }
    }

    /// Cancels a request of the stateless era, if that is what the notification says.
    fn cancel_by(&self, notification: &Notification<'_>) {
        if let ClientNotification::Cancelled(CancelledRequest { request_id, .. }) =
            ClientNotification::read(notification)
            && let Some(cancel) = self.requests.lock().remove(&request_id)
        {
            cancel.cancel();
        }
    }

    /// Closes the stream that the client listens on, which would not end by itself.
    pub fn stop_listening(&self) {
        if let Some(session) = self.session.get() {
            session.stop_listening();
        }
    }

    /// Ends the session and cancels all open requests. Tasks go on.
    pub fn end(&self) {
        if let Some(session) = self.session.get() {
            session.end();
        }
        for (_, cancel) in self.requests.lock().drain() {
            cancel.cancel();
        }
    }
}

async fn answer(receiver: &Arc<ReceiverInner>, caller: &Caller, message: &[u8], stream: &Arc<MessageStream>) {
    let Ok(Message::Request(request)) = jsonrpc::parse(message) else { return };
    match stateless::perform(receiver, caller, &request, None).await {
        Ok(OperationResult::Ready(response)) => stream.respond(Some(&response)),
        Ok(OperationResult::Work(work)) => stateless::run(work, stream).await,
        Err(error) => stream.respond(Some(&jsonrpc::error(Some(&request.id), &error))),
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("owner", &self.caller.owner).finish_non_exhaustive()
    }
}
