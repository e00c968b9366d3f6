//! Streamable HTTP.
//!
//! ```text
//!  accept loop ─► connection ─► guard (Host, Origin) ─► identity ─► body within limits ─► Receiver ─► JSON or SSE
//! ```

mod endpoint;
mod guard;
mod headers;
mod listen;
mod stream;

use std::sync::Arc;

use std::convert::Infallible;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use http_body_util::{Either, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use longhaul_receiver::Receiver;

pub use guard::Guard;
pub use listen::serve;

use crate::unread::UnreadBudget;
use crate::{Identify, Metrics, ServerLimits};

/// The state that all requests of the HTTP server share.
#[derive(Debug)]
pub struct HttpEndpoint {
    pub receiver: Receiver,
    pub identity: Arc<dyn Identify>,
    pub guard: Guard,
    pub limits: ServerLimits,
    pub metrics: Metrics,
    unread: UnreadBudget,
}

impl HttpEndpoint {
    pub fn new(receiver: Receiver, identity: Arc<dyn Identify>, guard: Guard, limits: ServerLimits) -> Self {
        let unread = UnreadBudget::new(limits.unread_bytes_max);
        Self { receiver, identity, guard, limits, metrics: Metrics::default(), unread }
    }
}

/// A response whose body is one piece or a stream of events.
type HttpResponse = Response<Either<Full<Bytes>, StreamBody<BoxStream<'static, Result<Frame<Bytes>, Infallible>>>>>;

fn whole(body: Bytes) -> HttpResponse {
    Response::new(Either::Left(Full::new(body)))
}

/// Answers a request. Three paths need no router, whose allocations for each request would be a tenth of a poll.
async fn route(endpoint: &Arc<HttpEndpoint>, request: Request<Incoming>) -> HttpResponse {
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    match request.uri().path() {
        "/mcp" => endpoint::receive(endpoint, request).await,
        "/healthz" if is_read => Box::pin(health(endpoint)).await,
        "/metrics" if is_read => metrics(endpoint, request.headers()),
        "/healthz" | "/metrics" => {
            let mut response = page(StatusCode::METHOD_NOT_ALLOWED, String::new());
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            response
        }
        _ => page(StatusCode::NOT_FOUND, String::new()),
    }
}

fn page(status: StatusCode, text: String) -> HttpResponse {
    let mut response = whole(text.into());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

async fn health(endpoint: &HttpEndpoint) -> HttpResponse {
    match endpoint.receiver.engine().store().check().await {
        Ok(()) => page(StatusCode::OK, "ok\n".to_owned()),
        // The cause is left out, because it may name files and disks. The store has logged it for the operator.
        Err(error) => {
            let sentence = format!("The store does not take writes, so nothing new is accepted. [{}]\n", error.code());
            page(StatusCode::SERVICE_UNAVAILABLE, sentence)
        }
    }
}

fn metrics(endpoint: &HttpEndpoint, headers: &HeaderMap) -> HttpResponse {
    const FORMAT: HeaderValue = HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
    if let Err(why) = endpoint.guard.check(headers) {
        return page(StatusCode::FORBIDDEN, format!("{why}\n"));
    }
    let mut response = page(StatusCode::OK, endpoint.metrics.render(&endpoint.receiver));
    response.headers_mut().insert(header::CONTENT_TYPE, FORMAT);
    response
}
