//! A stream of messages as server-sent events.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http_body_util::{Either, StreamBody};
use hyper::body::Frame;
use hyper::header::{self, HeaderValue};
use longhaul_receiver::StreamReader;
use longhaul_wire::jsonrpc::{self, RpcError};
use longhaul_wire::sse;

use super::{HttpEndpoint, HttpResponse, whole};
use crate::{Caller, NotIdentified};

/// How long a client should wait before it connects again.
const RETRY_MS: u64 = 1_000;

/// The response that streams these messages. It ends when the caller's right to call ends.
pub(super) fn respond(endpoint: &Arc<HttpEndpoint>, caller: Arc<Caller>, reader: StreamReader) -> HttpResponse {
    endpoint.metrics.stream_opened();
    let events =
        EventStream { open: OpenStream(Arc::clone(endpoint)), caller, reader, state: EventStreamState::Opening };
    let frames = stream::unfold(events, |mut events| async move {
        let bytes = events.next().await?;
        Some((Ok::<_, Infallible>(Frame::data(bytes)), events))
    });
    with_headers(HttpResponse::new(Either::Right(StreamBody::new(frames.boxed()))))
}

/// A stream without events.
pub(super) fn empty() -> HttpResponse {
    with_headers(whole(Bytes::new()))
}

fn with_headers(mut response: HttpResponse) -> HttpResponse {
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Proxies that buffer would hold events back.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

struct EventStream {
    open: OpenStream,
    caller: Arc<Caller>,
    reader: StreamReader,
    state: EventStreamState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum EventStreamState {
    Opening,
    Open,
    Ended,
}

impl EventStream {
    async fn next(&mut self) -> Option<Bytes> {
        match self.state {
            EventStreamState::Ended => return None,
            EventStreamState::Opening => {
                self.state = EventStreamState::Open;
                // Only a stream of a session can be resumed.
                if self.reader.stateless_request().is_none() {
                    let primer = self.reader.primer_id().map(|id| sse::primer(&id)).unwrap_or_default();
                    return Some(Bytes::from(sse::retry(RETRY_MS) + &primer));
                }
            }
            EventStreamState::Open => {}
        }
        let endpoint = &self.open.0;
        let next = tokio::time::timeout(endpoint.limits.keep_alive, self.reader.next());
        match self.caller.revoked.run_until_cancelled(next).await {
            Some(Ok(Some((number, text)))) => {
                let event = match self.reader.event_id(number) {
                    Some(id) => sse::numbered_event(&id, &text),
                    None => sse::event(&text),
                };
                match endpoint.unread.keep(event) {
                    Ok(event) => Some(Bytes::from(event)),
                    // Without room the connection breaks. The client of a session resumes the stream later; any other client
                    // gets an error as its response.
                    Err(full) => self.end_with(&full.into()),
                }
            }
            Some(Ok(None)) => None,
            Some(Err(_)) => Some(Bytes::from_static(sse::KEEP_ALIVE.as_bytes())),
            None => self.end_with(&RpcError::invalid_request(&NotIdentified::Ended.to_string())),
        }
    }

    /// Ends the stream, with an error as the response to a request outside of a session.
    fn end_with(&mut self, error: &RpcError) -> Option<Bytes> {
        self.state = EventStreamState::Ended;
        let request = self.reader.stateless_request()?;
        Some(Bytes::from(sse::event(&jsonrpc::error(Some(request), error))))
    }
}

/// Counts a stream as open until it is dropped.
struct OpenStream(Arc<HttpEndpoint>);

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.metrics.stream_closed();
    }
}
