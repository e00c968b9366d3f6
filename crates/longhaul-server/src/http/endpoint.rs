//! `/mcp`: moves the bytes of HTTP requests to the receiver and its responses back.

use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Method, Request, StatusCode};
use longhaul_receiver::{self as receiver, MetricsLabel, audit};
use longhaul_task::Owner;
use longhaul_wire::jsonrpc::{self, RequestId, RpcError};

use super::headers::RequestHeaders;
use super::{HttpEndpoint, HttpResponse, stream, whole};
use crate::{Caller, Credentials, NotIdentified};

pub(super) async fn receive(endpoint: &Arc<HttpEndpoint>, request: Request<Incoming>) -> HttpResponse {
    let (head, body) = request.into_parts();
    if let Err(why) = endpoint.guard.check(&head.headers) {
        return refuse(endpoint, StatusCode::FORBIDDEN, &RpcError::invalid_request(why));
    }
    let headers = RequestHeaders(&head.headers);
    if let Some(response) = endpoint.receiver.refuse_http_method(head.method.as_str(), &headers) {
        return respond(endpoint, None, response);
    }
    let caller = match endpoint.identity.identify(&Credentials::from_headers(&head.headers)) {
        Ok(caller) => caller,
        Err(why) => return unauthorized(endpoint, why),
    };
    let response = match head.method {
        // Boxed, because a future is as large as its largest branch, and every request would allocate that much.
        Method::GET => Box::pin(endpoint.receiver.listen(&caller, &headers)).await,
        Method::DELETE => Box::pin(endpoint.receiver.end_session(&caller, &headers)).await,
        _ => {
            if !is_json(&head.headers) {
                let error = RpcError::invalid_request("the Content-Type must be application/json");
                return refuse(endpoint, StatusCode::UNSUPPORTED_MEDIA_TYPE, &error);
            }
            let body = match read(endpoint, body).await {
                Ok(body) => body,
                Err(response) => return response,
            };
            // The body may have taken its time.
            if caller.revoked.is_cancelled() {
                return unauthorized(endpoint, NotIdentified::Ended);
            }
            tokio::select! {
                // Most requests are answered at once.
                biased;
                response = endpoint.receiver.receive(&caller, &headers, &body) => response,
                () = caller.revoked.cancelled() => return unauthorized(endpoint, NotIdentified::Ended),
            }
        }
    };
    respond(endpoint, Some(caller), response)
}

/// The HTTP response that carries a response of the receiver.
fn respond(
    endpoint: &Arc<HttpEndpoint>,
    caller: Option<Arc<Caller>>,
    response: receiver::MessageResponse,
) -> HttpResponse {
    let receiver::MessageResponse { body, http, tally, .. } = response;
    match tally {
        MetricsLabel::Request(method) => endpoint.metrics.request(method, http.status == 200),
        MetricsLabel::Refused => endpoint.metrics.refused(),
        MetricsLabel::Nothing => {}
    }
    match (body, caller) {
        (receiver::Body::Message(text), caller) => match endpoint.unread.keep(text) {
            Ok(text) => json(&http, text.into()),
            Err(full) => error(caller.as_ref().map(|caller| &caller.owner), full.answered().as_ref(), &full.into()),
        },
        (receiver::Body::Stream(reader), Some(caller)) => stream::respond(endpoint, caller, reader),
        (receiver::Body::EmptyStream | receiver::Body::Stream(_), _) => stream::empty(),
        (receiver::Body::Empty, _) => status(code(http.status)),
    }
}

/// The refusal of a caller that is not known, or no longer.
fn unauthorized(endpoint: &HttpEndpoint, why: NotIdentified) -> HttpResponse {
    let mut response = refuse(endpoint, StatusCode::UNAUTHORIZED, &RpcError::invalid_request(&why.to_string()));
    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

fn code(status: u16) -> StatusCode {
    StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// The whole body, if it is not too large and comes in time.
async fn read(endpoint: &Arc<HttpEndpoint>, mut body: Incoming) -> Result<Bytes, HttpResponse> {
    let limits = &endpoint.limits;
    let whole = async {
        let whole = Limited::new(&mut body, limits.message_bytes_max).collect().await;
        if whole.as_ref().is_err_and(|error| error.is::<LengthLimitError>()) {
            discard(&mut body).await;
        }
        whole
    };
    tokio::pin!(whole);
    // Most bodies arrive with their head and need no timer.
    let whole = match futures_util::poll!(whole.as_mut()) {
        Poll::Ready(whole) => Ok(whole),
        Poll::Pending => Box::pin(tokio::time::timeout(limits.body_time_max, whole)).await,
    };
    match whole {
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
async fn discard(body: &mut Incoming) {
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

/// Refuses something that the receiver has not seen.
fn refuse(endpoint: &HttpEndpoint, code: StatusCode, error: &RpcError) -> HttpResponse {
    endpoint.metrics.refused();
    self::error(None, None, &error.clone().with_status(code.as_u16()))
}

fn error(owner: Option<&Owner>, id: Option<&RequestId>, error: &RpcError) -> HttpResponse {
    audit::turned_away(owner, error);
    json(&error.into(), jsonrpc::error(id, error).into())
}

fn json(http: &receiver::HttpHead, text: Bytes) -> HttpResponse {
    let mut response = whole(text);
    *response.status_mut() = code(http.status);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(ms) = http.retry_after_ms {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(ms.div_ceil(1_000)));
    }
    if let Some(allow) = http.allow {
        headers.insert(header::ALLOW, HeaderValue::from_static(allow));
    }
    if let Some(token) = http.session_token.as_deref().and_then(|token| HeaderValue::from_str(token).ok()) {
        headers.insert("mcp-session-id", token);
    }
    response
}

fn status(code: StatusCode) -> HttpResponse {
    let mut response = whole(Bytes::new());
    *response.status_mut() = code;
    response
}
