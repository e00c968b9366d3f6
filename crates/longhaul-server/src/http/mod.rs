//! Streamable HTTP.
//!
//! ```text
//!  accept loop ─► connection ─► guard (Host, Origin) ─► identity ─► body within limits ─► Receiver ─► JSON or SSE
//! ```

mod connection;
mod endpoint;
mod guard;
mod half_close;
mod headers;
mod listen;
mod stream;

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use longhaul_engine::Budget;
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
    connections: Arc<Budget>,
}

impl HttpEndpoint {
    pub fn new(receiver: Receiver, identity: Arc<dyn Identify>, guard: Guard, limits: ServerLimits) -> Self {
        let unread = UnreadBudget::new(limits.unread_bytes_max);
        let connections = Budget::new("connections", limits.connections_max);
        let metrics = Metrics::new([unread.budget(), &connections].map(Arc::clone).into());
        Self { receiver, identity, guard, limits, metrics, unread, connections }
    }
}

/// The routes: `/mcp`, `/healthz`, `/metrics`.
pub fn router(endpoint: Arc<HttpEndpoint>) -> Router {
    let mcp = match endpoint.guard.cors() {
        Some(cors) => any(endpoint::receive).layer(cors),
        None => any(endpoint::receive),
    };
    Router::new().route("/mcp", mcp).route("/healthz", get(health)).route("/metrics", get(metrics)).with_state(endpoint)
}

async fn health(State(endpoint): State<Arc<HttpEndpoint>>) -> impl IntoResponse {
    match endpoint.receiver.engine().store().check().await {
        Ok(()) => (StatusCode::OK, "ok\n".to_owned()),
        // The cause is left out, because it may name files and disks. The store has logged it for the operator.
        Err(error) => {
            let sentence = format!("The store does not take writes, so nothing new is accepted. [{}]\n", error.code());
            (StatusCode::SERVICE_UNAVAILABLE, sentence)
        }
    }
}

async fn metrics(State(endpoint): State<Arc<HttpEndpoint>>, headers: HeaderMap) -> Response {
    if let Err(why) = endpoint.guard.check(&headers) {
        return (StatusCode::FORBIDDEN, format!("{why}\n")).into_response();
    }
    let page = endpoint.metrics.render(&endpoint.receiver);
    ([(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], page).into_response()
}
