//! A client of the stateful era: one session, with a new connection for each request.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hyper::body::Bytes;
use serde_json::{Value, json};

use crate::endpoint::HttpConnection;
use crate::schema::SentRequests;
use crate::{ReplyMessages, TestEndpoint, until};

/// The latest revision that has sessions.
pub const LATEST: &str = "2025-11-25";

#[allow(clippy::needless_pass_by_value, reason = "so that a test can write `json!` in the call")]
pub fn initialize_params(revision: &str, capabilities: Value) -> Value {
    let info = json!({ "name": "test", "version": "1" });
    json!({ "protocolVersion": revision, "capabilities": capabilities, "clientInfo": info })
}

/// A client in a session. Clones are the same client.
#[derive(Clone)]
pub struct SessionClient {
    endpoint: TestEndpoint,
    pub token: Option<String>,
    pub session: Option<String>,
    pub revision: String,
    /// `null` before `initialize`.
    pub initialize_result: Value,
    sent_requests: SentRequests,
    /// The ID of the newest request.
    last_id: Arc<AtomicU64>,
}

impl SessionClient {
    pub fn new(endpoint: impl Into<TestEndpoint>) -> Self {
        Self {
            endpoint: endpoint.into(),
            token: None,
            session: None,
            revision: LATEST.to_owned(),
            initialize_result: Value::Null,
            sent_requests: SentRequests::default(),
            last_id: Arc::default(),
        }
    }

    /// The same client at another endpoint, after a restart of the server.
    pub fn at(&self, endpoint: impl Into<TestEndpoint>) -> Self {
        Self { endpoint: endpoint.into(), ..self.clone() }
    }

    /// The same client with this bearer token.
    pub fn with_token(mut self, token: &str) -> Self {
        self.token = Some(token.to_owned());
        self
    }

    /// Opens a session at the latest revision.
    pub async fn open(endpoint: impl Into<TestEndpoint>, capabilities: Value) -> Self {
        Self::new(endpoint).initialize(LATEST, capabilities).await
    }

    pub async fn initialize(mut self, revision: &str, capabilities: Value) -> Self {
        self.session = None;
        let mut reply = self.send("initialize", initialize_params(revision, capabilities)).await;
        assert_eq!(reply.status, 200);
        let session = reply.headers.get("mcp-session-id").expect("a session").to_str().unwrap().to_owned();
        assert!(session.bytes().all(|byte| byte.is_ascii_graphic()));
        let message = reply.must_next().await;
        assert!(message.get("result").is_some(), "{message}");
        self.initialize_result = message["result"].clone();
        self.revision = self.initialize_result["protocolVersion"].as_str().unwrap().to_owned();
        self.session = Some(session);
        assert_eq!(self.notify("notifications/initialized", json!({})).await, 202);
        self
    }

    /// A request with a new ID. It is not sent.
    #[allow(clippy::needless_pass_by_value, reason = "so that a test can write `json!` in the call")]
    pub fn message(&self, method: &str, params: Value) -> Value {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
    }

    /// Sends a request, and returns the messages of its response.
    pub async fn send(&self, method: &str, params: Value) -> ReplyMessages {
        self.post(self.message(method, params).to_string()).await
    }

    /// Posts exactly this body.
    pub async fn post(&self, body: impl Into<Bytes>) -> ReplyMessages {
        self.http("POST", &[], body).await
    }

    /// Opens a stream with GET, or resumes one after an event.
    pub async fn listen(&self, after: Option<&str>) -> ReplyMessages {
        let headers: Vec<_> = after.map(|id| ("last-event-id", id)).into_iter().collect();
        let reply = self.http("GET", &headers, Bytes::new()).await;
        assert!(reply.is_stream(), "{}", reply.status);
        reply
    }

    /// Opens a stream with GET, and waits for its first event: from then on the server can use the stream.
    pub async fn listening(&self) -> ReplyMessages {
        let mut stream = self.listen(None).await;
        stream.first_event_id().await;
        stream
    }

    /// Ends the session.
    pub async fn end(&self) {
        assert_eq!(self.http("DELETE", &[], "").await.status, 204);
    }

    /// Sends an HTTP request with the headers of this client. A header in `changes` replaces that of the client, or removes
    /// it if the value is empty.
    pub async fn http(&self, method: &str, changes: &[(&str, &str)], body: impl Into<Bytes>) -> ReplyMessages {
        let mut headers = vec![("accept", "application/json, text/event-stream")];
        if method == "POST" {
            headers.push(("content-type", "application/json"));
        }
        if let Some(session) = &self.session {
            headers.extend([("mcp-session-id", session.as_str()), ("mcp-protocol-version", &self.revision)]);
        }
        let bearer = self.token.as_ref().map(|token| format!("Bearer {token}"));
        headers.extend(bearer.as_deref().map(|bearer| ("authorization", bearer)));
        headers.retain(|(name, _)| !changes.iter().any(|(other, _)| other == name));
        headers.extend(changes.iter().filter(|(_, value)| !value.is_empty()));
        let body = body.into();
        self.sent_requests.record_sent(&body);
        let mut connection = HttpConnection::open(&self.endpoint).await.expect("a server that listens");
        let reply = connection.send(method, "/mcp", &headers, body).await.expect("a response");
        ReplyMessages::new(reply, self.sent_requests.clone(), Some(self.revision.clone()))
    }

    /// Sends a notification, and returns the HTTP status.
    pub async fn notify(&self, method: &str, params: Value) -> u16 {
        self.post(json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string()).await.status
    }

    /// Sends the result of a request that the server has sent.
    pub async fn respond(&self, request: &Value, result: Value) {
        let message = json!({ "jsonrpc": "2.0", "id": request["id"], "result": result });
        assert_eq!(self.post(message.to_string()).await.status, 202);
    }

    /// Sends an error as the response to a request that the server has sent.
    pub async fn refuse(&self, request: &Value, code: i64, message: &str) {
        let response = json!({ "jsonrpc": "2.0", "id": request["id"], "error": { "code": code, "message": message } });
        assert_eq!(self.post(response.to_string()).await.status, 202);
    }

    /// Sends a request, and returns its response: a result or an error.
    pub async fn response(&self, method: &str, params: Value) -> Value {
        self.send(method, params).await.last().await
    }

    pub async fn result(&self, method: &str, params: Value) -> Value {
        let mut response = self.response(method, params).await;
        assert!(response.get("result").is_some(), "{method}: {response}");
        response["result"].take()
    }

    pub async fn error(&self, method: &str, params: Value) -> Value {
        let mut response = self.response(method, params).await;
        assert!(response.get("error").is_some(), "{method}: {response}");
        response["error"].take()
    }

    /// Calls a tool without asking for a task, and returns the result.
    pub async fn call(&self, tool: &str, arguments: Value) -> Value {
        self.result("tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    /// Calls a tool that shows a form. Returns the stream of the call, and the form.
    pub async fn call_until_form(&self, tool: &str) -> (ReplyMessages, Value) {
        let mut call = self.send("tools/call", json!({ "name": tool, "arguments": {} })).await;
        let question = call.next_of("elicitation/create").await;
        (call, question)
    }

    /// Creates a task that shows a form. Returns the stream on which the form came, the task's ID, and the form.
    pub async fn create_until_form(&self, tool: &str) -> (ReplyMessages, String, Value) {
        let mut listening = self.listening().await;
        let id = self.create(tool, json!({})).await;
        let question = listening.next_of("elicitation/create").await;
        (listening, id, question)
    }

    /// Waits for the result of a task, and returns its text.
    pub async fn result_text(&self, id: &str) -> Value {
        self.result("tasks/result", json!({ "taskId": id })).await["content"][0]["text"].take()
    }

    /// Calls a tool as a task, and returns the task's ID.
    pub async fn create(&self, tool: &str, arguments: Value) -> String {
        let result = self.result("tools/call", json!({ "name": tool, "arguments": arguments, "task": {} })).await;
        result["task"]["taskId"].as_str().expect("a task").to_owned()
    }

    pub async fn get(&self, id: &str) -> Value {
        self.result("tasks/get", json!({ "taskId": id })).await
    }

    /// Polls a task until it has this status.
    pub async fn until(&self, id: &str, status: &str) -> Value {
        let mut task = Value::Null;
        until(&format!("{status} of {id}"), async || {
            task = self.get(id).await;
            task["status"] == status
        })
        .await;
        task
    }
}
