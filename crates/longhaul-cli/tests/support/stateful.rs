//! A small client of the stateful era over HTTP: a session, each request on a connection of its own. Whatever it gets is
//! checked against the official schema.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::{HeaderMap, Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::in_time;
use super::schema::Asked;

pub(crate) const LATEST: &str = "2025-11-25";

/// A client in a session. Clones are the same client.
#[derive(Clone)]
pub(crate) struct Stateful {
    address: SocketAddr,
    /// The bearer token that it shows.
    pub(crate) token: Option<String>,
    /// The session that it is in.
    pub(crate) session: Option<String>,
    pub(crate) revision: String,
    /// What the server said in the handshake.
    pub(crate) server: Value,
    asked: Asked,
    count: Arc<Mutex<u64>>,
}

/// An answer: some messages, one after the other.
pub(crate) struct Exchange {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    body: Incoming,
    waiting: Vec<u8>,
    ready: VecDeque<Value>,
    is_stream: bool,
    is_read: bool,
    /// The ID of the last event.
    pub(crate) last_event: Option<String>,
    client: Stateful,
}

impl Stateful {
    /// A client that is in no session yet.
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self {
            address,
            token: None,
            session: None,
            revision: LATEST.to_owned(),
            server: Value::Null,
            asked: Asked::default(),
            count: Arc::default(),
        }
    }

    /// The same client, who has found the server again.
    pub(crate) fn at(&self, address: SocketAddr) -> Self {
        Self { address, ..self.clone() }
    }

    /// Opens a session at the latest revision.
    pub(crate) async fn open(address: SocketAddr, capabilities: Value) -> Self {
        Self::new(address).initialize(LATEST, capabilities).await
    }

    /// Opens a session.
    pub(crate) async fn initialize(mut self, revision: &str, capabilities: Value) -> Self {
        let params = json!({
            "protocolVersion": revision, "capabilities": capabilities, "clientInfo": { "name": "test", "version": "1" },
        });
        self.session = None;
        let mut answer = self.send("initialize", params).await;
        assert_eq!(answer.status, 200);
        let session = answer.headers.get("mcp-session-id").expect("a session").to_str().unwrap().to_owned();
        assert!(session.bytes().all(|byte| byte.is_ascii_graphic()));
        let message = answer.must_next().await;
        assert!(message.get("result").is_some(), "{message}");
        self.server = message["result"].clone();
        self.revision = self.server["protocolVersion"].as_str().unwrap().to_owned();
        self.session = Some(session);
        assert_eq!(self.notify("notifications/initialized", json!({})).await, 202);
        self
    }

    /// A request on its way.
    #[allow(clippy::needless_pass_by_value, reason = "what is sent is written where it is sent")]
    pub(crate) fn message(&self, method: &str, params: Value) -> Value {
        let mut count = self.count.lock().unwrap();
        *count += 1;
        let id = json!(*count);
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
    }

    /// Sends a request, and gives back what comes.
    pub(crate) async fn send(&self, method: &str, params: Value) -> Exchange {
        self.post(self.message(method, params).to_string()).await
    }

    /// Posts exactly this.
    pub(crate) async fn post(&self, body: impl Into<Bytes>) -> Exchange {
        self.http("POST", &[], body).await
    }

    /// Listens, or goes on after an event.
    pub(crate) async fn listen(&self, after: Option<&str>) -> Exchange {
        let headers: Vec<_> = after.map(|id| ("last-event-id", id)).into_iter().collect();
        let exchange = self.http("GET", &headers, Bytes::new()).await;
        assert!(exchange.is_stream, "{}", exchange.status);
        exchange
    }

    /// One HTTP request, with the headers of this client.
    pub(crate) async fn http(&self, method: &str, more: &[(&str, &str)], body: impl Into<Bytes>) -> Exchange {
        let mut headers = vec![("accept", "application/json, text/event-stream")];
        if method == "POST" {
            headers.push(("content-type", "application/json"));
        }
        if let Some(session) = &self.session {
            headers.extend([("mcp-session-id", session.as_str()), ("mcp-protocol-version", &self.revision)]);
        }
        let bearer = self.token.as_ref().map(|token| format!("Bearer {token}"));
        headers.extend(bearer.as_deref().map(|bearer| ("authorization", bearer)));
        headers.retain(|(name, _)| !more.iter().any(|(other, _)| other == name));
        headers.extend(more.iter().filter(|(_, value)| !value.is_empty()));
        let body = body.into();
        self.asked.sends(&body);
        let response = self.exchange(method, &headers, body).await;
        let (head, body) = response.into_parts();
        let is_stream = head.headers.get("content-type").is_some_and(|kind| kind == "text/event-stream");
        Exchange {
            status: head.status.as_u16(),
            headers: head.headers,
            body,
            waiting: Vec::new(),
            ready: VecDeque::new(),
            is_stream,
            is_read: false,
            last_event: None,
            client: self.clone(),
        }
    }

    async fn exchange(&self, method: &str, headers: &[(&str, &str)], body: Bytes) -> Response<Incoming> {
        let stream = TcpStream::connect(self.address).await.expect("a server that listens");
        stream.set_nodelay(true).unwrap();
        let (mut connection, driver) = http1::handshake(TokioIo::new(stream)).await.expect("HTTP");
        tokio::spawn(driver);
        let mut request = Request::builder().method(method).uri("/mcp").header("host", self.address.to_string());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body)).expect("a test sends only what HTTP can carry");
        in_time("the head of an answer", connection.send_request(request)).await.expect("an answer")
    }

    /// Tells something; the status says whether it was taken.
    pub(crate) async fn notify(&self, method: &str, params: Value) -> u16 {
        self.post(json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string()).await.status
    }

    /// Answers a request of the server.
    pub(crate) async fn respond(&self, request: &Value, result: Value) {
        let message = json!({ "jsonrpc": "2.0", "id": request["id"], "result": result });
        assert_eq!(self.post(message.to_string()).await.status, 202);
    }

    /// Refuses a request of the server.
    pub(crate) async fn refuse(&self, request: &Value, code: i64, why: &str) {
        let message = json!({ "jsonrpc": "2.0", "id": request["id"], "error": { "code": code, "message": why } });
        assert_eq!(self.post(message.to_string()).await.status, 202);
    }

    /// A request and its response, whatever it is.
    pub(crate) async fn response(&self, method: &str, params: Value) -> Value {
        self.send(method, params).await.last().await
    }

    /// A request and its result.
    pub(crate) async fn result(&self, method: &str, params: Value) -> Value {
        let mut response = self.response(method, params).await;
        assert!(response.get("result").is_some(), "{method}: {response}");
        response["result"].take()
    }

    /// A request that must be refused.
    pub(crate) async fn error(&self, method: &str, params: Value) -> Value {
        let mut response = self.response(method, params).await;
        assert!(response.get("error").is_some(), "{method}: {response}");
        response["error"].take()
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Value {
        self.result("tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    /// Makes a task, and gives back its ID.
    pub(crate) async fn create(&self, tool: &str, arguments: Value) -> String {
        let made = self.result("tools/call", json!({ "name": tool, "arguments": arguments, "task": {} })).await;
        made["task"]["taskId"].as_str().expect("a task").to_owned()
    }

    pub(crate) async fn get(&self, id: &str) -> Value {
        self.result("tasks/get", json!({ "taskId": id })).await
    }

    /// Looks at a task until it has this status.
    pub(crate) async fn until(&self, id: &str, status: &str) -> Value {
        in_time(&format!("{status} of {id}"), async {
            loop {
                let task = self.get(id).await;
                if task["status"] == status {
                    return task;
                }
                tokio::task::yield_now().await;
            }
        })
        .await
    }
}

impl Exchange {
    /// Whether it is a stream of events.
    pub(crate) fn is_stream(&self) -> bool {
        self.is_stream
    }

    /// The next message, which is checked; none when there are no more.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        let message = self.read().await?;
        self.client.asked.hears(Some(&self.client.revision), &message);
        Some(message)
    }

    pub(crate) async fn must_next(&mut self) -> Value {
        self.next().await.expect("a message")
    }

    /// The next message of this method; others are passed over.
    pub(crate) async fn next_of(&mut self, method: &str) -> Value {
        loop {
            let message = self.must_next().await;
            if message["method"] == method {
                return message;
            }
        }
    }

    async fn read(&mut self) -> Option<Value> {
        if let Some(message) = self.ready.pop_front() {
            return Some(message);
        }
        if self.is_stream { self.next_event().await } else { self.whole().await }
    }

    async fn whole(&mut self) -> Option<Value> {
        if std::mem::replace(&mut self.is_read, true) {
            return None;
        }
        let body = in_time("a body", (&mut self.body).collect()).await.expect("a whole body").to_bytes();
        match serde_json::from_slice(&body).ok()? {
            Value::Array(messages) => self.ready.extend(messages),
            message => return Some(message),
        }
        self.ready.pop_front()
    }

    async fn next_event(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.waiting.windows(2).position(|pair| pair == b"\n\n") {
                let event: Vec<u8> = self.waiting.drain(..end + 2).collect();
                let mut data = String::new();
                for line in std::str::from_utf8(&event).expect("UTF-8").lines() {
                    match line.split_once(": ") {
                        Some(("id", id)) => self.last_event = Some(id.to_owned()),
                        Some(("data", text)) => text.clone_into(&mut data),
                        Some(("retry", ms)) => assert!(ms.parse::<u64>().is_ok()),
                        _ => assert!(line.is_empty() || line.starts_with(':'), "{line:?}"),
                    }
                }
                if !data.is_empty() {
                    return Some(serde_json::from_str(&data).expect("JSON"));
                }
                continue;
            }
            let frame = in_time("the next event of a stream", self.body.frame()).await?.ok()?;
            self.waiting.extend(frame.into_data().unwrap_or_default());
        }
    }

    /// Waits until the stream has begun: its first event has an ID and says nothing.
    pub(crate) async fn begun(&mut self) -> String {
        while self.last_event.is_none() {
            let frame = in_time("the first event of a stream", self.body.frame()).await.unwrap().unwrap();
            self.waiting.extend(frame.into_data().unwrap_or_default());
            while let Some(end) = self.waiting.windows(2).position(|pair| pair == b"\n\n") {
                let event = String::from_utf8(self.waiting[..end].to_vec()).unwrap();
                match event.strip_suffix("\ndata: ").and_then(|event| event.strip_prefix("id: ")) {
                    Some(id) => self.last_event = Some(id.to_owned()),
                    None if event.starts_with("retry: ") => {}
                    None => break,
                }
                self.waiting.drain(..end + 2);
            }
        }
        self.last_event.clone().unwrap()
    }

    /// All messages to the end.
    pub(crate) async fn rest(&mut self) -> Vec<Value> {
        let mut messages = Vec::new();
        while let Some(message) = self.next().await {
            messages.push(message);
        }
        messages
    }

    /// The last message, which is the response.
    pub(crate) async fn last(&mut self) -> Value {
        let status = self.status;
        self.rest().await.pop().unwrap_or_else(|| panic!("no answer, only {status}"))
    }
}
