//! A stream of messages as server-sent events.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use longhaul_receiver::Messages;
use longhaul_wire::jsonrpc::{self, RequestId, RpcError};
use longhaul_wire::sse;
use tokio::sync::mpsc;

use super::Endpoint;
use crate::unread::Kept;
use crate::{Caller, NotIdentified};

/// The response that streams these messages. When the client goes away, or may not listen any more, so does the request.
pub(super) fn respond(
    endpoint: &Arc<Endpoint>,
    caller: Arc<Caller>,
    id: RequestId,
    messages: Box<dyn Messages>,
) -> Response {
    let keep_alive = endpoint.limits.keep_alive;
    let (sender, receiver) = mpsc::channel(endpoint.limits.stream_messages_max);
    let endpoint = Arc::clone(endpoint);
    tokio::spawn(async move {
        endpoint.metrics.stream_opened();
        let pump = pump(&endpoint, &id, messages, &sender);
        if caller.revoked.run_until_cancelled(pump).await.is_none() {
            let error = RpcError::invalid_request(&NotIdentified::Ended.to_string());
            // A client that has not read what came before does not get this either.
            let _ = sender.try_send(Kept::uncounted(sse::event(&jsonrpc::error(Some(&id), &error))));
        }
        endpoint.metrics.stream_closed();
    });
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
async fn pump(endpoint: &Endpoint, id: &RequestId, mut messages: Box<dyn Messages>, sender: &mpsc::Sender<Kept>) {
    loop {
        tokio::select! {
            () = sender.closed() => break,
            message = messages.next() => {
                let Some(message) = message else { break };
                let (event, goes_on) = match endpoint.unread.keep(sse::event(&message)) {
                    Ok(event) => (event, true),
                    Err(full) => (Kept::uncounted(sse::event(&jsonrpc::error(Some(id), &full.into()))), false),
                };
                if sender.send(event).await.is_err() || !goes_on {
                    break;
                }
            }
        }
    }
}
