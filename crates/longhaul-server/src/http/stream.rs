//! A stream of messages as server-sent events.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use longhaul_receiver::Messages;
use longhaul_wire::jsonrpc::{self, RequestId};
use longhaul_wire::sse;
use tokio::sync::mpsc;

use super::Endpoint;
use crate::unread::Kept;

/// The response that streams these messages. When the client goes away, so does the request.
pub(super) fn respond(endpoint: &Arc<Endpoint>, id: RequestId, messages: Box<dyn Messages>) -> Response {
    let (sender, receiver) = mpsc::channel(endpoint.limits.stream_messages_max);
    tokio::spawn(pump(Arc::clone(endpoint), id, messages, sender));
    let keep_alive = endpoint.limits.keep_alive;
    let events = stream::unfold(receiver, move |mut receiver| async move {
        let event = match tokio::time::timeout(keep_alive, receiver.recv()).await {
            Ok(Some(event)) => Bytes::from(event),
            Ok(None) => return None,
            Err(_) => Bytes::from_static(sse::KEEP_ALIVE.as_bytes()),
        };
        Some((Ok::<_, Infallible>(event), receiver))
    });
    let mut response = Response::new(Body::from_stream(events));
    set_headers(response.headers_mut());
    response
}

/// The headers of every stream of events.
pub(super) fn set_headers(headers: &mut HeaderMap) {
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Proxies that buffer would hold events back.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
}

/// Carries messages to the response until one side has had enough.
async fn pump(endpoint: Arc<Endpoint>, id: RequestId, mut messages: Box<dyn Messages>, sender: mpsc::Sender<Kept>) {
    endpoint.metrics.stream_opened();
    loop {
        tokio::select! {
            () = sender.closed() => break,
            message = messages.next() => {
                let Some(message) = message else { break };
                let (event, goes_on) = match endpoint.unread.keep(sse::event(&message)) {
                    Ok(event) => (event, true),
                    Err(full) => (Kept::uncounted(sse::event(&jsonrpc::error(Some(&id), &full.into()))), false),
                };
                if sender.send(event).await.is_err() || !goes_on {
                    break;
                }
            }
        }
    }
    endpoint.metrics.stream_closed();
}
