//! What the receiver gives back to a transport.

use std::fmt;

use longhaul_wire::Operation;
use longhaul_wire::jsonrpc::{self, RequestId, RpcError};

use crate::StreamReader;

/// The reaction to one message. A transport only moves its bytes.
#[derive(Debug)]
pub struct MessageResponse {
    /// What is sent to the client.
    pub body: Body,
    /// Status and headers of the HTTP response. Other transports ignore it: everything that matters is in the body.
    pub http: HttpHead,
    /// How the message is counted in the metrics.
    pub tally: MetricsLabel,
    /// On a [`Connection`](crate::Connection), the stream of the session that this message has opened.
    pub listening: Option<StreamReader>,
}

/// What is sent to the client.
pub enum Body {
    /// Nothing.
    Empty,
    /// One JSON-RPC message, or a batch of them.
    Message(String),
    /// Several messages, one after the other.
    Stream(StreamReader),
    /// A stream that carries nothing: HTTP's answer to a request that was cancelled.
    EmptyStream,
}

/// Status and headers of an HTTP response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpHead {
    /// The status code.
    pub status: u16,
    /// `Retry-After`, in milliseconds.
    pub retry_after_ms: Option<u64>,
    /// `Allow`, with a status of 405.
    pub allow: Option<&'static str>,
    /// `Mcp-Session-Id`: the token of a session that this message has opened.
    pub session_token: Option<String>,
}

/// How a message is counted in the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricsLabel {
    /// A request. It is successful if its HTTP status is 200.
    Request(&'static str),
    /// Anything that could not be read as a request of a known method.
    Refused,
    /// Not counted.
    Nothing,
}

impl MetricsLabel {
    pub(crate) fn of(method: &str) -> Self {
        Operation::METHODS.iter().find(|known| **known == method).map_or(Self::Refused, |known| Self::Request(known))
    }
}

impl HttpHead {
    fn status(status: u16) -> Self {
        Self { status, retry_after_ms: None, allow: None, session_token: None }
    }
}

impl From<&RpcError> for HttpHead {
    fn from(error: &RpcError) -> Self {
        Self { retry_after_ms: error.retry_after_ms(), ..Self::status(error.http_status()) }
    }
}

impl MessageResponse {
    fn new(body: Body, status: u16, tally: MetricsLabel) -> Self {
        Self { body, http: HttpHead::status(status), tally, listening: None }
    }

    /// No answer: a notification or a response was taken.
    pub(crate) fn accepted() -> Self {
        Self::new(Body::Empty, 202, MetricsLabel::Nothing)
    }

    /// No answer: a session was ended.
    pub(crate) fn no_content() -> Self {
        Self::new(Body::Empty, 204, MetricsLabel::Nothing)
    }

    pub(crate) fn message(text: String, tally: MetricsLabel) -> Self {
        Self::new(Body::Message(text), 200, tally)
    }

    pub(crate) fn stream(reader: StreamReader, tally: MetricsLabel) -> Self {
        Self::new(Body::Stream(reader), 200, tally)
    }

    pub(crate) fn empty_stream(tally: MetricsLabel) -> Self {
        Self::new(Body::EmptyStream, 200, tally)
    }

    /// An error, as the answer to the request of this ID if there is one.
    pub(crate) fn error(id: Option<&RequestId>, error: &RpcError, tally: MetricsLabel) -> Self {
        let response = Self::message(jsonrpc::error(id, error), tally);
        Self { http: error.into(), ..response }
    }

    pub(crate) fn opening(mut self, session_token: String) -> Self {
        self.http.session_token = Some(session_token);
        self
    }

    pub(crate) fn allowing(mut self, allow: &'static str) -> Self {
        self.http.allow = Some(allow);
        self
    }

    pub(crate) fn listening_on(mut self, reader: Option<StreamReader>) -> Self {
        self.listening = reader;
        self
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("Empty"),
            Self::Message(text) => f.debug_tuple("Message").field(text).finish(),
            Self::Stream(reader) => f.debug_tuple("Stream").field(reader).finish(),
            Self::EmptyStream => f.write_str("EmptyStream"),
        }
    }
}
