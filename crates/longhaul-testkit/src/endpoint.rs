//! Where a client sends its requests: over HTTP, or straight into a receiver in this process.

use std::net::SocketAddr;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{HeaderMap, HeaderValue as HttpValue};
use hyper::{Request, header};
use hyper_util::rt::TokioIo;
use longhaul_receiver::{Body, Caller, MessageResponse, Receiver};
use longhaul_server::{ANONYMOUS, Metrics};
use longhaul_task::Owner;
use longhaul_wire::{HeaderValue, Headers};
use tokio::net::TcpStream;

use crate::{FailureReport, Reply, in_time};

/// Where clients reach a server.
#[derive(Debug, Clone)]
pub enum TestEndpoint {
    Http(SocketAddr),
    /// A receiver in this process. A bearer token is taken for the name of its owner.
    Memory(Receiver),
}

impl From<SocketAddr> for TestEndpoint {
    fn from(address: SocketAddr) -> Self {
        Self::Http(address)
    }
}

impl From<&TestEndpoint> for TestEndpoint {
    fn from(endpoint: &TestEndpoint) -> Self {
        endpoint.clone()
    }
}

pub(crate) struct HttpConnection {
    endpoint: TestEndpoint,
    http: Option<SendRequest<Full<Bytes>>>,
}

impl HttpConnection {
    pub(crate) async fn open(endpoint: &TestEndpoint) -> Result<Self, FailureReport> {
        let http = match endpoint {
            TestEndpoint::Memory(_) => None,
            TestEndpoint::Http(address) => {
                let stream = TcpStream::connect(address).await.map_err(FailureReport::lost)?;
                stream.set_nodelay(true).map_err(FailureReport::lost)?;
                let (http, driver) = http1::handshake(TokioIo::new(stream)).await.map_err(FailureReport::lost)?;
                // The request that waits for a response gets the error, too.
                tokio::spawn(driver);
                Some(http)
            }
        };
        Ok(Self { endpoint: endpoint.clone(), http })
    }

    pub(crate) fn endpoint(&self) -> &TestEndpoint {
        &self.endpoint
    }

    /// Sends a request, and returns the response before its body was received.
    pub(crate) async fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Result<Reply, FailureReport> {
        match (&self.endpoint, &mut self.http) {
            (TestEndpoint::Http(address), Some(http)) => {
                let mut request = Request::builder().method(method).uri(path).header("host", address.to_string());
                for (name, value) in headers {
                    request = request.header(*name, *value);
                }
                let request = request.body(Full::new(body)).expect("a test sends only what HTTP can carry");
                http.ready().await.map_err(FailureReport::lost)?;
                let response = in_time("the head of a response", http.send_request(request)).await;
                Ok(response.map_err(FailureReport::lost)?.into())
            }
            (TestEndpoint::Memory(receiver), _) if path == "/metrics" => {
                tokio::task::yield_now().await;
                Ok(Reply::whole(200, HeaderMap::new(), Metrics::default().render(receiver).into()))
            }
            (TestEndpoint::Memory(receiver), _) => {
                let headers: Vec<_> =
                    headers.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec())).collect();
                Ok(enter(receiver, method, &headers, &body).await)
            }
            (TestEndpoint::Http(_), None) => unreachable!("a connection over HTTP is open"),
        }
    }
}

/// Hands a request to a receiver, as an HTTP transport does.
pub(crate) async fn enter(receiver: &Receiver, method: &str, headers: &[(String, Vec<u8>)], body: &[u8]) -> Reply {
    // Other tasks may run here, as during a request over a socket.
    tokio::task::yield_now().await;
    let headers = GivenHeaders(headers);
    if let Some(refusal) = receiver.refuse_http_method(method, &headers) {
        return reply(refusal);
    }
    let caller = caller(&headers);
    reply(match method {
        "GET" => in_time("a stream", Box::pin(receiver.listen(&caller, &headers))).await,
        "DELETE" => receiver.end_session(&caller, &headers).await,
        _ => in_time("a response", Box::pin(receiver.receive(&caller, &headers, body))).await,
    })
}

fn caller(headers: &GivenHeaders<'_>) -> Caller {
    let owner = |name: &str| Owner::parse(name).expect("the name of an owner");
    match headers.value("authorization") {
        HeaderValue::Once(value) => {
            let value = std::str::from_utf8(value).expect("UTF-8");
            Caller::known(owner(value.strip_prefix("Bearer ").expect("a bearer token")))
        }
        _ => Caller::anonymous(owner(ANONYMOUS)),
    }
}

fn reply(response: MessageResponse) -> Reply {
    let MessageResponse { body, http, .. } = response;
    let mut headers = HeaderMap::new();
    let kind = match &body {
        Body::Empty => None,
        Body::Message(_) => Some("application/json"),
        Body::Stream(_) | Body::EmptyStream => Some("text/event-stream"),
    };
    headers.extend(kind.map(|kind| (header::CONTENT_TYPE, HttpValue::from_static(kind))));
    headers.extend(http.retry_after_ms.map(|ms| (header::RETRY_AFTER, HttpValue::from(ms.div_ceil(1_000)))));
    headers.extend(http.allow.map(|allow| (header::ALLOW, HttpValue::from_static(allow))));
    if let Some(token) = http.session_token {
        headers.insert("mcp-session-id", token.parse().expect("a token that a header can carry"));
    }
    match body {
        Body::Stream(reader) => Reply::stream(http.status, headers, reader),
        Body::Message(text) => Reply::whole(http.status, headers, text.into()),
        Body::Empty | Body::EmptyStream => Reply::whole(http.status, headers, Bytes::new()),
    }
}

/// Headers as data. White space around a value is removed, as in HTTP.
struct GivenHeaders<'a>(&'a [(String, Vec<u8>)]);

impl Headers for GivenHeaders<'_> {
    fn value(&self, name: &str) -> HeaderValue<'_> {
        let mut sent = self.0.iter().filter(|(sent, _)| sent.eq_ignore_ascii_case(name));
        match (sent.next(), sent.next()) {
            (None, _) => HeaderValue::Absent,
            (Some((_, value)), None) => HeaderValue::Once(value.trim_ascii()),
            (Some(_), Some(_)) => HeaderValue::Repeated,
        }
    }
}
