//! A client of protocol version 2026-07-28 with the tasks extension: one connection, one request at a time.

use std::collections::HashMap;

use hyper::body::Bytes;
use longhaul_wire::headers::encode_value;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::endpoint::HttpConnection;
use crate::schema::SentRequests;
use crate::{Reply, ReplyMessages, TestEndpoint, WholeReply, in_time, until};

pub const VERSION: &str = "2026-07-28";

#[derive(Debug)]
pub enum FailureReport {
    /// The connection broke. It is unknown whether the request was carried out.
    Lost(String),
    /// The server sent an error, or something that is not a response.
    Refused { status: u16, body: String },
}

impl FailureReport {
    pub(crate) fn lost(error: impl std::error::Error) -> Self {
        Self::Lost(format!("{error:?}"))
    }
}

/// A message of this era, with what the client says of itself in each.
pub fn stateless_message(id: &Value, method: &str, mut params: Value, capabilities: &Value) -> Value {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(VERSION);
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities.clone();
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

pub fn tasks_and_forms() -> Value {
    json!({ "elicitation": {}, "extensions": { "io.modelcontextprotocol/tasks": {} } })
}

#[derive(Debug, Clone)]
pub struct GetTaskResult {
    /// The whole result, byte for byte.
    pub text: String,
    /// The parsed text.
    pub value: Value,
}

impl GetTaskResult {
    pub fn status(&self) -> &str {
        self.value["status"].as_str().unwrap_or_default()
    }

    pub fn is_settled(&self) -> bool {
        matches!(self.status(), "completed" | "failed" | "cancelled")
    }

    pub fn questions(&self) -> Vec<String> {
        self.value["inputRequests"].as_object().map(|open| open.keys().cloned().collect()).unwrap_or_default()
    }

    pub fn result_text(&self) -> &str {
        self.value["result"]["content"][0]["text"].as_str().unwrap_or_default()
    }
}

pub struct StatelessClient {
    connection: HttpConnection,
    requests: u64,
    /// Its capabilities: tasks and forms, unless a test changes them.
    pub capabilities: Value,
    pub token: Option<String>,
}

impl StatelessClient {
    pub async fn connect(endpoint: impl Into<TestEndpoint>) -> Result<Self, FailureReport> {
        let connection = HttpConnection::open(&endpoint.into()).await?;
        Ok(Self { connection, requests: 0, capabilities: tasks_and_forms(), token: None })
    }

    /// The same client on a new connection.
    pub async fn again(&self) -> Self {
        let connection = HttpConnection::open(self.connection.endpoint()).await.expect("a server that listens");
        Self { connection, requests: 0, capabilities: self.capabilities.clone(), token: self.token.clone() }
    }

    /// The same client with the token of this owner.
    pub fn with_token(mut self, token: &str) -> Self {
        self.token = Some(token.to_owned());
        self
    }

    /// A valid request, for tests that change it before it is sent.
    pub fn message(&mut self, method: &str, params: Value) -> (Value, Vec<(String, String)>) {
        self.requests += 1;
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let mut headers = vec![
            header("content-type", "application/json"),
            header("accept", "application/json, text/event-stream"),
            header("mcp-protocol-version", VERSION),
            header("mcp-method", method),
        ];
        let name = ["name", "taskId", "uri"].iter().find_map(|member| params.get(*member)).and_then(Value::as_str);
        headers.extend(name.map(|name| header("mcp-name", &encode_value(name))));
        headers.extend(self.token.as_ref().map(|token| header("authorization", &format!("Bearer {token}"))));
        (stateless_message(&json!(self.requests), method, params, &self.capabilities), headers)
    }

    /// Posts exactly this body, and returns the response before its body was received.
    pub async fn post(&mut self, body: impl Into<Bytes>, headers: &[(String, String)]) -> Result<Reply, FailureReport> {
        let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        self.connection.send("POST", "/mcp", &headers, body.into()).await
    }

    /// Posts exactly this body, and waits for the whole response.
    pub async fn exchange(
        &mut self,
        body: impl Into<Bytes>,
        headers: &[(String, String)],
    ) -> Result<WholeReply, FailureReport> {
        let sent = body.into();
        self.post(sent.clone(), headers).await?.read_checked(&SentRequests::of(&sent)).await
    }

    /// Posts exactly this body. The response must be a stream.
    pub async fn post_stream(&mut self, body: String, headers: &[(String, String)]) -> ReplyMessages {
        let sent_requests = SentRequests::of(body.as_bytes());
        let mut reply = self.post(body, headers).await.expect("a response");
        if !reply.is_stream() {
            let body = reply.bytes().await;
            panic!("not a stream, but {} {body:?}", reply.status)
        }
        ReplyMessages::new(reply, sent_requests, None)
    }

    /// A request whose response is a stream, on a new connection.
    pub async fn stream(&self, method: &str, params: Value) -> ReplyMessages {
        let mut client = self.again().await;
        let (message, headers) = client.message(method, params);
        client.post_stream(message.to_string(), &headers).await
    }

    pub async fn listen(&self, ids: &[&str]) -> ReplyMessages {
        self.stream("subscriptions/listen", json!({ "notifications": { "taskIds": ids } })).await
    }

    /// A request and its response, a result or an error.
    pub async fn send(&mut self, method: &str, params: Value) -> WholeReply {
        let (message, headers) = self.message(method, params);
        self.exchange(message.to_string(), &headers).await.expect("a response")
    }

    /// A request and its result, byte for byte.
    pub async fn request(&mut self, method: &str, params: Value) -> Result<Box<RawValue>, FailureReport> {
        let (message, headers) = self.message(method, params);
        let reply = self.exchange(message.to_string(), &headers).await?;
        let refused = || FailureReport::Refused { status: reply.status, body: reply.text().to_owned() };
        let mut members: HashMap<String, Box<RawValue>> = serde_json::from_slice(&reply.body).map_err(|_| refused())?;
        let is_ours = members.get("id").is_some_and(|id| id.get() == self.requests.to_string());
        members.remove("result").filter(|_| reply.status == 200 && is_ours).ok_or_else(refused)
    }

    pub async fn error(&mut self, method: &str, params: Value) -> Value {
        let response = self.send(method, params.clone()).await.json();
        assert!(response.get("error").is_some(), "{method} {params} was not refused: {response}");
        response["error"].clone()
    }

    /// Calls a tool. The call may become a task.
    pub async fn call(&mut self, tool: &str, arguments: Value) -> Result<Value, FailureReport> {
        let result = self.request("tools/call", json!({ "name": tool, "arguments": arguments })).await?;
        Ok(parsed(&result))
    }

    pub async fn call_error(&mut self, tool: &str, arguments: Value) -> Value {
        self.error("tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    /// Calls a tool that becomes a task, and returns its ID.
    pub async fn create(&mut self, tool: &str, arguments: Value) -> Result<String, FailureReport> {
        let result = self.call(tool, arguments).await?;
        let refused = || FailureReport::Refused { status: 200, body: result.to_string() };
        result["taskId"].as_str().map(str::to_owned).ok_or_else(refused)
    }

    pub async fn get(&mut self, id: &str) -> Result<GetTaskResult, FailureReport> {
        let result = self.request("tasks/get", json!({ "taskId": id })).await?;
        Ok(GetTaskResult { value: parsed(&result), text: result.get().to_owned() })
    }

    /// Answers questions of a task: an object of answers by key.
    pub async fn update(&mut self, id: &str, responses: Value) -> Result<(), FailureReport> {
        let params = json!({ "taskId": id, "inputResponses": responses });
        self.request("tasks/update", params).await.map(drop)
    }

    pub async fn cancel(&mut self, id: &str) -> Result<(), FailureReport> {
        self.request("tasks/cancel", json!({ "taskId": id })).await.map(drop)
    }

    /// Polls a task until this is true of it.
    pub async fn get_until(
        &mut self,
        id: &str,
        wanted: impl Fn(&GetTaskResult) -> bool,
    ) -> Result<GetTaskResult, FailureReport> {
        in_time(&format!("a change of task {id}"), async {
            loop {
                let view = self.get(id).await?;
                if wanted(&view) {
                    return Ok(view);
                }
                tokio::task::yield_now().await;
            }
        })
        .await
    }

    pub async fn settled(&mut self, id: &str) -> GetTaskResult {
        self.get_until(id, GetTaskResult::is_settled).await.expect("a response")
    }

    /// Waits until a task has this many open questions, and returns their keys.
    pub async fn asked(&mut self, id: &str, questions: usize) -> Vec<String> {
        self.get_until(id, |task| task.questions().len() == questions).await.expect("a response").questions()
    }

    /// A page of the server, such as `/metrics`.
    pub async fn page(&mut self, path: &str) -> WholeReply {
        let reply = self.connection.send("GET", path, &[], Bytes::new()).await.expect("a page");
        reply.read_whole().await.expect("a whole page")
    }

    pub async fn metric(&mut self, name: &str) -> f64 {
        let page = self.page("/metrics").await;
        let values = page.text().lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
            let (metric, value) = line.rsplit_once(' ')?;
            (metric.split('{').next() == Some(name)).then(|| value.parse::<f64>().expect("a number"))
        });
        values.sum()
    }

    /// The value of a metric whose only label has this value.
    pub async fn metric_of(&mut self, name: &str, label: &str) -> Option<f64> {
        let page = self.page("/metrics").await;
        let mut values = page.text().lines().filter_map(|line| {
            let (metric, value) = line.rsplit_once(' ')?;
            let (metric, labels) = metric.split_once('{')?;
            (metric == name && labels.ends_with(&format!("\"{label}\"}}"))).then(|| value.parse().expect("a number"))
        });
        values.next()
    }

    #[allow(clippy::float_cmp, reason = "they are whole numbers")]
    pub async fn until_metric(&mut self, name: &str, expected: f64) {
        until(&format!("{name} at {expected}"), async || self.metric(name).await == expected).await;
    }
}

fn parsed(text: &RawValue) -> Value {
    serde_json::from_str(text.get()).expect("it was parsed before")
}
