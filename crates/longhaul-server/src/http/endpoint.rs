//! `/mcp`: one POST, one message.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use longhaul_receiver::Reply;
use longhaul_wire::jsonrpc::{self, Message, RpcError};

use super::headers::RequestHeaders;
use super::{Endpoint, stream};

pub(super) async fn receive(State(endpoint): State<Arc<Endpoint>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    if let Err(why) = endpoint.guard.check(&head.headers) {
        return refuse(&endpoint, StatusCode::FORBIDDEN, &RpcError::invalid_request(why));
    }
    if head.method != Method::POST {
        let mut response = refuse(&endpoint, StatusCode::METHOD_NOT_ALLOWED, &RpcError::invalid_request(ONLY_POST));
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
        return response;
    }
    let authorization = head.headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
    let owner = match endpoint.identity.owner(authorization) {
        Ok(owner) => owner,
        Err(why) => {
            let error = RpcError::invalid_request(&why.to_string());
            let mut response = refuse(&endpoint, StatusCode::UNAUTHORIZED, &error);
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            return response;
        }
    };
    if !is_json(&head.headers) {
        let error = RpcError::invalid_request("the Content-Type must be application/json");
        return refuse(&endpoint, StatusCode::UNSUPPORTED_MEDIA_TYPE, &error);
    }
    let body = match read(&endpoint, body).await {
        Ok(body) => body,
        Err(response) => return response,
    };
    match jsonrpc::parse(&body) {
        Ok(Message::Request(request)) => {
            let headers = RequestHeaders(&head.headers);
            match endpoint.receiver.receive(&owner, &request, Some(&headers)).await {
                Reply::Message { text, status } => {
                    endpoint.metrics.request(&request.method, status == 200);
                    let code = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                    match endpoint.unread.keep(text) {
                        Ok(text) => json(code, Body::from(Bytes::from(text))),
                        Err(full) => busy(&request, &full.into()),
                    }
                }
                Reply::Stream(messages) => {
                    endpoint.metrics.request(&request.method, true);
                    stream::respond(&endpoint, request.id.clone(), messages)
                }
            }
        }
        // Nothing that a client can notify us of means anything on this transport: closing the stream cancels.
        Ok(Message::Notification(_)) => status(StatusCode::ACCEPTED),
        Ok(Message::Response(_)) => {
            let error = RpcError::invalid_request("a client must not send responses");
            refuse(&endpoint, StatusCode::BAD_REQUEST, &error)
        }
        Err(rejected) => {
            endpoint.metrics.refused();
            let code = StatusCode::from_u16(rejected.error.http_status()).unwrap_or(StatusCode::BAD_REQUEST);
            json(code, Body::from(jsonrpc::error(rejected.id.as_ref(), &rejected.error)))
        }
    }
}

const ONLY_POST: &str = "this endpoint takes POST only";

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
fn refuse(endpoint: &Endpoint, code: StatusCode, error: &RpcError) -> Response {
    endpoint.metrics.refused();
    json(code, Body::from(jsonrpc::error(None, error)))
}

/// A refusal of a request that may be made again in a moment.
fn busy(request: &jsonrpc::Request<'_>, error: &RpcError) -> Response {
    let mut response = json(StatusCode::SERVICE_UNAVAILABLE, Body::from(jsonrpc::error(Some(&request.id), error)));
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

fn json(code: StatusCode, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn status(code: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = code;
    response
}
