//! `/mcp`: one POST, one message. What does not say that it is of the stateless era is part of a session.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use longhaul_receiver::{Caller, Http, Kind, Reply, audit};
use longhaul_task::Owner;
use longhaul_wire::Headers as _;
use longhaul_wire::ext2026::VERSION;
use longhaul_wire::jsonrpc::{self, Message, Rejected, RequestId, RpcError};

use super::headers::RequestHeaders;
use super::{Endpoint, stateful, stream};
use crate::{NotIdentified, Presented};

pub(super) async fn receive(State(endpoint): State<Arc<Endpoint>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    if let Err(why) = endpoint.guard.check(&head.headers) {
        return refuse(&endpoint, StatusCode::FORBIDDEN, &RpcError::invalid_request(why));
    }
    let headers = RequestHeaders(&head.headers);
    // By its header alone: what the newest clients send is looked into only once.
    let is_stateless = headers.value("mcp-protocol-version") == longhaul_wire::HeaderValue::Once(VERSION.as_bytes());
    let takes_method = match head.method {
        Method::POST => true,
        Method::GET | Method::DELETE => !is_stateless,
        _ => false,
    };
    if !takes_method {
        let (allow, why) = if is_stateless { ("POST", ONLY_POST) } else { ("GET, POST, DELETE", ONLY_THESE) };
        let mut response = refuse(&endpoint, StatusCode::METHOD_NOT_ALLOWED, &RpcError::invalid_request(why));
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allow));
        return response;
    }
    let caller = match endpoint.identity.identify(&Presented::by(&head.headers)) {
        Ok(caller) => caller,
        Err(why) => return unauthorized(&endpoint, why),
    };
    match head.method {
        Method::GET => return stateful::get(&endpoint, &caller, &head.headers).await,
        Method::DELETE => return stateful::delete(&endpoint, &caller, &head.headers).await,
        _ => {}
    }
    if !is_json(&head.headers) {
        let error = RpcError::invalid_request("the Content-Type must be application/json");
        return refuse(&endpoint, StatusCode::UNSUPPORTED_MEDIA_TYPE, &error);
    }
    let body = match read(&endpoint, body).await {
        Ok(body) => body,
        Err(response) => return response,
    };
    // The body may have taken its time.
    if caller.revoked.is_cancelled() {
        return unauthorized(&endpoint, NotIdentified::Ended);
    }
    if !is_stateless && !longhaul_receiver::is_stateless(&body) {
        return stateful::post(&endpoint, &caller, &head.headers, &body).await;
    }
    match jsonrpc::parse(&body) {
        Ok(Message::Request(request)) => match tokio::select! {
            // Most are answered before anybody looks further.
            biased;
            reply = endpoint.receiver.receive(&caller, &request, Some(&headers)) => reply,
            () = caller.revoked.cancelled() => return unauthorized(&endpoint, NotIdentified::Ended),
        } {
            Reply::Message { text, http } => {
                endpoint.metrics.request(&request.method, http.status == 200);
                match endpoint.unread.keep(text) {
                    Ok(text) => answer(http, text.into()),
                    Err(full) => error(Some(&caller.owner), Some(&request.id), &full.into()),
                }
            }
            Reply::Stream(messages) => {
                endpoint.metrics.request(&request.method, true);
                stream::respond(&endpoint, caller, request.id.clone(), messages)
            }
        },
        // Nothing that a client can notify us of means anything on this transport: closing the stream cancels.
        Ok(Message::Notification(_)) => status(StatusCode::ACCEPTED),
        Ok(Message::Response(_)) => {
            refuse(&endpoint, StatusCode::BAD_REQUEST, &RpcError::invalid_request(NO_RESPONSES))
        }
        Err(rejected) => reject(&endpoint, &caller, &rejected),
    }
}

const ONLY_POST: &str = "this endpoint takes POST only";

const ONLY_THESE: &str = "this endpoint takes POST, GET and DELETE";

pub(super) const NO_RESPONSES: &str = "a client must not send responses";

/// The refusal of a caller that is not known, or not any more.
pub(super) fn unauthorized(endpoint: &Endpoint, why: NotIdentified) -> Response {
    let mut response = refuse(endpoint, StatusCode::UNAUTHORIZED, &RpcError::invalid_request(&why.to_string()));
    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

/// The refusal of what is no message. It is counted like one.
pub(super) fn reject(endpoint: &Endpoint, caller: &Caller, rejected: &Rejected) -> Response {
    too_many(endpoint, caller, Kind::Other).unwrap_or_else(|| {
        endpoint.metrics.refused();
        error(Some(&caller.owner), rejected.id.as_ref(), &rejected.error)
    })
}

/// Counts a request whose message is not looked at; the answer, if it is one too many.
pub(super) fn too_many(endpoint: &Endpoint, caller: &Caller, kind: Kind) -> Option<Response> {
    let refused = endpoint.receiver.admit(&caller.owner, kind).err()?;
    endpoint.metrics.refused();
    Some(error(Some(&caller.owner), None, &refused))
}

/// The status that goes with an answer.
fn code(status: u16) -> StatusCode {
    StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// The whole body, if it is not too large and comes in time.
async fn read(endpoint: &Arc<Endpoint>, mut body: Body) -> Result<Bytes, Response> {
    let limits = &endpoint.limits;
    let whole = async {
        let whole = Limited::new(&mut body, limits.message_bytes_max).collect().await;
        if whole.as_ref().is_err_and(|error| error.is::<LengthLimitError>()) {
            discard(&mut body).await;
        }
        whole
    };
    match tokio::time::timeout(limits.body_time_max, whole).await {
        Ok(Ok(whole)) => Ok(whole.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let why = format!("a message has at most {} bytes", limits.message_bytes_max);
            Err(refuse(endpoint, StatusCode::PAYLOAD_TOO_LARGE, &RpcError::invalid_request(&why)))
        }
        Ok(Err(_)) => Err(status(StatusCode::BAD_REQUEST)),
        Err(_) => {
            let error = RpcError::invalid_request("the message did not arrive in time");
            Err(refuse(endpoint, StatusCode::REQUEST_TIMEOUT, &error))
        }
    }
}

/// How much of a message that is too large is still taken, so that its sender gets to the answer.
const DISCARDED_BYTES_MAX: usize = 64 << 20;

/// Reads on and keeps nothing: a client that is cut off while it sends sees a broken connection and not the refusal.
async fn discard(body: &mut Body) {
    let mut bytes = 0;
    while bytes < DISCARDED_BYTES_MAX
        && let Some(Ok(frame)) = body.frame().await
    {
        bytes += frame.data_ref().map_or(0, Bytes::len);
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = value.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json")
}

/// A refusal of something that is not known to be a request.
pub(super) fn refuse(endpoint: &Endpoint, code: StatusCode, error: &RpcError) -> Response {
    endpoint.metrics.refused();
    self::error(None, None, &error.clone().with_status(code.as_u16()))
}

/// An error as the answer to a request that the receiver did not get, or could not answer.
pub(super) fn error(owner: Option<&Owner>, id: Option<&RequestId>, error: &RpcError) -> Response {
    audit::turned_away(owner, error);
    answer(error.into(), jsonrpc::error(id, error).into())
}

/// An answer. If it says when to try again, so does its head, in whole seconds.
pub(super) fn answer(http: Http, text: Bytes) -> Response {
    let mut response = json(code(http.status), Body::from(text));
    if let Some(ms) = http.retry_after_ms {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(ms.div_ceil(1_000)));
    }
    response
}

pub(super) fn json(code: StatusCode, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

pub(super) fn status(code: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = code;
    response
}
