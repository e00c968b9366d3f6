//! The stateful era over HTTP: POST in a session, GET to listen or to go on, DELETE to end it.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use longhaul_receiver::core2025::{Delivery, Pass, Reader, Session, Taken};
use longhaul_receiver::{Http, Kind};
use longhaul_wire::core2025::{Peer, Revision};
use longhaul_wire::jsonrpc::{self, Message, Request, RpcError};
use longhaul_wire::{Headers, sse};

use super::endpoint::{NO_RESPONSES, answer, error, json, refuse, reject, status, too_many, unauthorized};
use super::headers::RequestHeaders;
use super::{Endpoint, stream as events};
use crate::{Caller, NotIdentified};

/// The header that names a session.
static SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

static LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// How long an answer may take before it is streamed: proxies and clients give up on a silent connection.
const ANSWER_PATIENCE_MAX: Duration = Duration::from_secs(5);

/// How long a client should wait before it connects again.
const RETRY_MS: u64 = 1_000;

/// Opens a session.
async fn initialize(endpoint: &Arc<Endpoint>, caller: &Caller, request: &Request<'_>) -> Response {
    let opened = async {
        let (peer, answer) = endpoint.receiver.handshake(request, caller)?;
        let (pass, token) = endpoint.receiver.issue(&caller.owner, peer).await?;
        Ok::<_, RpcError>((pass, token, answer))
    };
    let refused = |error: &RpcError| {
        endpoint.metrics.request("initialize", false);
        self::error(Some(&caller.owner), Some(&request.id), error)
    };
    let (pass, token, answer) = match opened.await {
        Ok(opened) => opened,
        Err(error) => return refused(&error),
    };
    if let Err(full) = endpoint.sessions.find(&endpoint.receiver, caller, &pass) {
        return refused(&full.into());
    }
    let Ok(token) = HeaderValue::from_str(&token) else {
        return refused(&RpcError::internal("The session could not be named."));
    };
    endpoint.metrics.request("initialize", true);
    let mut response = json(StatusCode::OK, Body::from(answer));
    response.headers_mut().insert(SESSION.clone(), token);
    response
}

/// Takes what a client posted: in a session, or to open one.
pub(super) async fn post(endpoint: &Arc<Endpoint>, caller: &Arc<Caller>, headers: &HeaderMap, body: &[u8]) -> Response {
    if !headers.contains_key(&SESSION) {
        return match jsonrpc::parse(body) {
            Ok(Message::Request(request)) if request.method == "initialize" => {
                initialize(endpoint, caller, &request).await
            }
            Ok(Message::Request(request)) => {
                endpoint.metrics.refused();
                error(Some(&caller.owner), Some(&request.id), &no_session())
            }
            // Outside of a session it means nothing, and nobody waits for an answer.
            Ok(Message::Notification(_)) => status(StatusCode::ACCEPTED),
            Ok(Message::Response(_)) => {
                refuse(endpoint, StatusCode::BAD_REQUEST, &RpcError::invalid_request(NO_RESPONSES))
            }
            Err(rejected) => reject(endpoint, caller, &rejected),
        };
    }
    let session = match find(endpoint, caller, headers).await {
        Ok(found) => found,
        Err(response) => return response,
    };
    match session.take(body).await {
        Taken::Noted => status(StatusCode::ACCEPTED),
        Taken::Rejected { text, http } => {
            endpoint.metrics.refused();
            answer(http, text.into())
        }
        Taken::Answered { method, text, http } => {
            endpoint.metrics.request(method, http.status == 200);
            keep(endpoint, caller, http, text)
        }
        Taken::Works { method, reader } => {
            endpoint.metrics.request(method.unwrap_or_default(), true);
            let delivery = tokio::select! {
                biased;
                delivery = reader.delivery(ANSWER_PATIENCE_MAX) => delivery,
                () = caller.revoked.cancelled() => return unauthorized(endpoint, NotIdentified::Ended),
            };
            match delivery {
                // A cancelled request has no answer, and yet HTTP wants one.
                Delivery::Answers(answers) if answers.is_empty() => respond(stream::empty()),
                Delivery::Answers(answers) => {
                    let text = match (method, answers.as_slice()) {
                        (Some(_), [answer]) => answer.to_string(),
                        _ => format!("[{}]", answers.join(",")),
                    };
                    keep(endpoint, caller, Http::OK, text)
                }
                Delivery::Stream(reader) => streamed(endpoint, caller, &session, reader),
            }
        }
    }
}

/// Opens a stream to listen on, or goes on with one that broke.
pub(super) async fn get(endpoint: &Arc<Endpoint>, caller: &Arc<Caller>, headers: &HeaderMap) -> Response {
    if let Some(too_many) = too_many(endpoint, caller, Kind::Read) {
        return too_many;
    }
    let session = match find(endpoint, caller, headers).await {
        Ok(found) => found,
        Err(response) => return response,
    };
    session.touch();
    let last = headers.get(&LAST_EVENT).and_then(|value| value.to_str().ok()).and_then(EventId::parse);
    let resumed = match &last {
        None => None,
        Some(last) => match (session.resume(last.stream, last.number), last.ticket) {
            (None, Some(ticket)) => session.resume_lost(ticket).await,
            (resumed, _) => resumed,
        },
    };
    // What is not there any more cannot be gone on with: the client listens anew.
    match resumed.or_else(|| session.listen()) {
        Some(reader) => streamed(endpoint, caller, &session, reader),
        None => gone(endpoint, caller),
    }
}

/// Ends a session.
pub(super) async fn delete(endpoint: &Arc<Endpoint>, caller: &Caller, headers: &HeaderMap) -> Response {
    if let Some(too_many) = too_many(endpoint, caller, Kind::Other) {
        return too_many;
    }
    match pass(endpoint, caller, headers).await {
        Ok(pass) if endpoint.sessions.end(&pass) => status(StatusCode::NO_CONTENT),
        Ok(_) => gone(endpoint, caller),
        Err(response) => response,
    }
}

/// A refusal of something that is not known to be a request, of somebody who is known.
fn refuse_of(endpoint: &Endpoint, caller: &Caller, code: StatusCode, why: &RpcError) -> Response {
    endpoint.metrics.refused();
    error(Some(&caller.owner), None, &why.clone().with_status(code.as_u16()))
}

/// The pass that a request shows, and whether it says a version that is spoken.
async fn pass(endpoint: &Arc<Endpoint>, caller: &Caller, headers: &HeaderMap) -> Result<Pass, Response> {
    let malformed = |error: &RpcError| refuse_of(endpoint, caller, StatusCode::BAD_REQUEST, error);
    let mut tokens = headers.get_all(&SESSION).iter();
    let (Some(token), None) = (tokens.next(), tokens.next()) else {
        return Err(malformed(&no_session()));
    };
    let pass = endpoint.receiver.open_pass(&caller.owner, token.as_bytes()).await;
    let pass = pass.ok_or_else(|| gone(endpoint, caller))?;
    let headers = RequestHeaders(headers);
    let version = headers.value("mcp-protocol-version");
    Revision::of_request(version, Some(pass.peer.revision)).map_err(|error| malformed(&error))?;
    Ok(pass)
}

async fn find(endpoint: &Arc<Endpoint>, caller: &Caller, headers: &HeaderMap) -> Result<Arc<Session>, Response> {
    let pass = pass(endpoint, caller, headers).await?;
    match endpoint.sessions.find(&endpoint.receiver, caller, &pass) {
        Ok(session) => session.ok_or_else(|| gone(endpoint, caller)),
        Err(full) => Err(error(Some(&caller.owner), None, &full.into())),
    }
}

/// The answer for a request that says of no era what it takes.
fn no_session() -> RpcError {
    RpcError::invalid_request(
        "a request needs one Mcp-Session-Id header, which the answer to `initialize` has, or the `_meta` of 2026-07-28",
    )
}

/// The answer for a session that is unknown, over, or somebody else's: nobody can tell which. What is in it was not
/// looked at, so it is counted here.
fn gone(endpoint: &Endpoint, caller: &Caller) -> Response {
    if let Some(too_many) = too_many(endpoint, caller, Kind::Other) {
        return too_many;
    }
    let gone = RpcError::invalid_request("there is no such session; begin a new one with `initialize`");
    refuse_of(endpoint, caller, StatusCode::NOT_FOUND, &gone)
}

/// An answer, if there is room for it until it is read.
fn keep(endpoint: &Endpoint, caller: &Caller, http: Http, text: String) -> Response {
    match endpoint.unread.keep(text) {
        Ok(text) => answer(http, text.into()),
        Err(full) => error(Some(&caller.owner), full.answered().as_ref(), &full.into()),
    }
}

/// A stream of messages as events that can be gone on with, also by another token of the same owner.
fn streamed(endpoint: &Arc<Endpoint>, caller: &Arc<Caller>, session: &Session, reader: Reader) -> Response {
    endpoint.metrics.stream_opened();
    let (open, caller) = (Open(Arc::clone(endpoint)), Arc::clone(caller));
    let (begins, ticket) = (Some(session.peer()), session.ticket(&reader));
    let state = Streaming { open, caller, begins, ticket, reader };
    respond(stream::unfold(state, |mut state| async move {
        let bytes = state.next().await?;
        Some((Ok(bytes), state))
    }))
}

fn respond(body: impl stream::Stream<Item = Result<Bytes, Infallible>> + Send + 'static) -> Response {
    let mut response = Response::new(Body::from_stream(body));
    events::set_headers(response.headers_mut());
    response
}

struct Streaming {
    open: Open,
    caller: Arc<Caller>,
    /// Whom it is for, until it has begun.
    begins: Option<Peer>,
    /// What its client can come back with if it is not here any more.
    ticket: Option<String>,
    reader: Reader,
}

impl Streaming {
    fn event_id(&self, number: u64) -> String {
        EventId { stream: self.reader.stream(), number, ticket: self.ticket.as_deref() }.to_string()
    }

    async fn next(&mut self) -> Option<Bytes> {
        let endpoint = &self.open.0;
        if let Some(peer) = self.begins.take() {
            let mut first = sse::retry(RETRY_MS);
            // Clients of older revisions would take an event without data for a message.
            if peer.revision.has_tasks() {
                first.push_str(&sse::primer(&self.event_id(self.reader.seen())));
            }
            return Some(Bytes::from(first));
        }
        let next = tokio::time::timeout(endpoint.limits.keep_alive, self.reader.next());
        // Nothing more, not even what is there already, once the caller may not listen any more.
        match self.caller.revoked.run_until_cancelled(next).await? {
            Ok(Some((number, text))) => {
                let event = sse::numbered_event(&self.event_id(number), &text);
                // Without room the connection breaks; the client finds the message when it comes back.
                endpoint.unread.keep(event).ok().map(Bytes::from)
            }
            Ok(None) => None,
            Err(_) => Some(Bytes::from_static(sse::KEEP_ALIVE.as_bytes())),
        }
    }
}

/// Counts a stream for as long as it is open.
struct Open(Arc<Endpoint>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.metrics.stream_closed();
    }
}

/// The name of an event: where it stands on which stream, and what that stream is to answer, for a process that does
/// not have it.
struct EventId<'a> {
    stream: u64,
    number: u64,
    ticket: Option<&'a str>,
}

impl<'a> EventId<'a> {
    fn parse(text: &'a str) -> Option<Self> {
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
