//! The entrance of HTTP transports: bytes, headers and the caller go in, a [`MessageResponse`] comes out. Which session
//! a message belongs to is decided here, its era by `route::is_stateless`. Pipes enter by a [`Connection`](crate::Connection).

use std::sync::Arc;
use std::time::Duration;

use longhaul_wire::initialize::{self, Initialize};
use longhaul_wire::jsonrpc::{self, Message, RpcError};
use longhaul_wire::{HeaderValue, Headers, Peer, ReplyTo, Revision, refusal as wire_refusal, route};

use crate::receiver::ReceiverInner;
use crate::response::MetricsLabel;
use crate::session::token::SessionClaims;
use crate::session::{ResponseDelivery, Session};
use crate::stream::EventId;
use crate::{Caller, MessageResponse, Receiver, RequestKind, audit, refusal, stateless};

const SESSION_HEADER: &str = "mcp-session-id";

const DELIVERY: ResponseDelivery = ResponseDelivery { patience: RESPONSE_PATIENCE_MAX, joins_batches: false };

/// How long a response may take before it is sent as a stream of events.
const RESPONSE_PATIENCE_MAX: Duration = Duration::from_secs(5);

impl Receiver {
    /// The refusal of a request whose HTTP method the endpoint does not take.
    pub fn refuse_http_method(&self, method: &str, headers: &dyn Headers) -> Option<MessageResponse> {
        if method == "POST" {
            return None;
        }
        let (allow, why) = if route::is_stateless(b"", Some(headers)) {
            ("POST", "this endpoint takes POST only")
        } else if matches!(method, "GET" | "DELETE") {
            return None;
        } else {
            ("GET, POST, DELETE", "this endpoint takes POST, GET and DELETE")
        };
        let error = RpcError::invalid_request(why).with_status(405);
        audit::turned_away(None, &error);
        Some(MessageResponse::error(None, &error, MetricsLabel::Refused).allowing(allow))
    }

    /// Takes the body of a POST.
    pub async fn receive(&self, caller: &Caller, headers: &(dyn Headers + Sync), body: &[u8]) -> MessageResponse {
        let receiver = &self.inner;
        if route::is_stateless(body, Some(headers)) {
            return stateless::receive(receiver, caller, Some(headers), body).await;
        }
        if headers.value(SESSION_HEADER) == HeaderValue::Absent {
            return Box::pin(without_session(receiver, caller, body)).await;
        }
        match Box::pin(find_session(receiver, caller, headers)).await {
            Ok(session) => Box::pin(session.receive(Some(headers), body, DELIVERY)).await,
            Err(response) => response,
        }
    }

    /// Answers a GET: opens a stream to listen on, or continues one that broke.
    pub async fn listen(&self, caller: &Caller, headers: &(dyn Headers + Sync)) -> MessageResponse {
        let receiver = &self.inner;
        if let Err(too_many) = receiver.rates.admit(&caller.owner, RequestKind::Read) {
            return refuse(caller, &too_many);
        }
        let session = match find_session(receiver, caller, headers).await {
            Ok(session) => session,
            Err(response) => return response,
        };
        session.touch();
        let last_event = match headers.value("last-event-id") {
            HeaderValue::Once(bytes) => std::str::from_utf8(bytes).ok().and_then(EventId::parse),
            HeaderValue::Absent | HeaderValue::Repeated => None,
        };
        match session.resume_or_listen(last_event).await {
            Some(reader) => MessageResponse::stream(session.resumable(reader), MetricsLabel::Nothing),
            None => no_such_session(receiver, caller),
        }
    }

    /// Answers a DELETE: ends a session.
    pub async fn end_session(&self, caller: &Caller, headers: &(dyn Headers + Sync)) -> MessageResponse {
        let receiver = &self.inner;
        if let Err(too_many) = receiver.rates.admit(&caller.owner, RequestKind::Other) {
            return refuse(caller, &too_many);
        }
        match session_claims(receiver, caller, headers).await {
            Ok(claims) if receiver.sessions.end(&claims, receiver.options.sessions.ended_max) => {
                MessageResponse::no_content()
            }
            Ok(_) => no_such_session(receiver, caller),
            Err(response) => response,
        }
    }
}

/// A message without a session: only `initialize` is possible.
async fn without_session(receiver: &Arc<ReceiverInner>, caller: &Caller, body: &[u8]) -> MessageResponse {
    match jsonrpc::parse(body) {
        Ok(Message::Request(request)) if request.method == initialize::METHOD => {
            open_session(receiver, caller, &request).await.unwrap_or_else(|error| {
                audit::turned_away(Some(&caller.owner), &error);
                MessageResponse::error(Some(&request.id), &error, MetricsLabel::of(initialize::METHOD))
            })
        }
        Ok(Message::Request(request)) => {
            let error = wire_refusal::session_required();
            audit::turned_away(Some(&caller.owner), &error);
            MessageResponse::error(Some(&request.id), &error, MetricsLabel::Refused)
        }
        // It has no meaning outside of a session, and no answer.
        Ok(Message::Notification(_)) => MessageResponse::accepted(),
        Ok(Message::Response(_)) => stateless::unexpected_response(),
        Err(rejected) => stateless::reject(receiver, caller, &rejected),
    }
}

async fn open_session(
    receiver: &Arc<ReceiverInner>,
    caller: &Caller,
    request: &jsonrpc::Request<'_>,
) -> Result<MessageResponse, RpcError> {
    let (peer, answer) = handshake(receiver, caller, request)?;
    let now = receiver.engine.now().await.map_err(|error| refusal::of_engine(&error))?;
    let random = &**receiver.engine.random();
    let claims = SessionClaims::new(peer, now, random);
    let token = claims.seal(&caller.owner, &receiver.session_seal, random);
    let token = token.ok_or_else(|| RpcError::internal("The session could not be sealed."))?;
    receiver.sessions.open(receiver, caller, &claims)?;
    Ok(MessageResponse::message(answer, MetricsLabel::of(initialize::METHOD)).opening(token))
}

/// Reads `initialize`: the client of the session, and the response.
pub(crate) fn handshake(
    receiver: &ReceiverInner,
    caller: &Caller,
    request: &jsonrpc::Request<'_>,
) -> Result<(Peer, String), RpcError> {
    receiver.rates.admit(&caller.owner, RequestKind::Other)?;
    let asked = Initialize::parse(request.params.raw())?;
    tracing::debug!(client = %asked.client_name, version = %asked.client_version, "a client opens a session");
    let options = &receiver.options;
    let offer = initialize::Offer {
        name: &options.name,
        title: None,
        version: &options.version,
        instructions: options.instructions.as_deref(),
        features: receiver.catalogue.current().features(),
        lists_tasks: caller.is_identified,
    };
    let to = ReplyTo { id: &request.id, revision: asked.peer.revision, server: &receiver.server };
    Ok((asked.peer, initialize::answer(&to, &offer)))
}

/// The claims of the session token that a request presents.
async fn session_claims(
    receiver: &Arc<ReceiverInner>,
    caller: &Caller,
    headers: &(dyn Headers + Sync),
) -> Result<SessionClaims, MessageResponse> {
    let malformed = |error: RpcError| refuse(caller, &error.with_status(400));
    let HeaderValue::Once(token) = headers.value(SESSION_HEADER) else {
        return Err(malformed(wire_refusal::session_required()));
    };
    let claims = match receiver.engine.now().await {
        Ok(now) => SessionClaims::open(token, &caller.owner, &receiver.session_seal, now),
        Err(_) => None,
    };
    let claims = claims.ok_or_else(|| no_such_session(receiver, caller))?;
    let version = headers.value("mcp-protocol-version");
    Revision::of_request(version, Some(claims.peer.revision)).map_err(malformed)?;
    Ok(claims)
}

async fn find_session(
    receiver: &Arc<ReceiverInner>,
    caller: &Caller,
    headers: &(dyn Headers + Sync),
) -> Result<Arc<Session>, MessageResponse> {
    let claims = session_claims(receiver, caller, headers).await?;
    match receiver.sessions.find(receiver, caller, &claims) {
        Ok(session) => session.ok_or_else(|| no_such_session(receiver, caller)),
        Err(full) => {
            let error = full.into();
            audit::turned_away(Some(&caller.owner), &error);
            Err(MessageResponse::error(None, &error, MetricsLabel::Nothing))
        }
    }
}

/// Refuses what is not known to be a request.
fn refuse(caller: &Caller, error: &RpcError) -> MessageResponse {
    audit::turned_away(Some(&caller.owner), error);
    MessageResponse::error(None, error, MetricsLabel::Refused)
}

/// Refuses a message in a session that there is not. The message was not looked at, so it is counted here.
fn no_such_session(receiver: &ReceiverInner, caller: &Caller) -> MessageResponse {
    let error = match receiver.rates.admit(&caller.owner, RequestKind::Other) {
        Ok(()) => wire_refusal::no_such_session(),
        Err(too_many) => too_many,
    };
    refuse(caller, &error)
}
