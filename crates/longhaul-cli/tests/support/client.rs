//! A small client of protocol version 2026-07-28 with the tasks extension: one connection, one request at a time. Whatever
//! it reads is checked against the official schema.

use std::net::SocketAddr;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{HeaderMap, Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::in_time;
use super::schema::Asked;

pub(crate) const VERSION: &str = "2026-07-28";

/// Why there is no result.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The connection broke. Whether the request was carried out, nobody knows.
    Lost(String),
    /// The server said no, or something that is no answer.
    Refused { status: u16, body: String },
}

impl Trouble {
    fn lost(error: impl std::error::Error) -> Self {
        Self::Lost(format!("{error:?}"))
    }
}

/// An answer, whatever it is.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    /// The body, which must be JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {:?}", self.body))
    }
}

/// A task as `tasks/get` showed it.
#[derive(Debug, Clone)]
pub(crate) struct TaskView {
    /// The whole result, byte for byte.
    pub(crate) text: String,
    /// The same, to look into.
    pub(crate) value: Value,
}

impl TaskView {
    pub(crate) fn status(&self) -> &str {
        self.value["status"].as_str().unwrap_or_default()
    }

    pub(crate) fn is_settled(&self) -> bool {
        matches!(self.status(), "completed" | "failed" | "cancelled")
    }

    /// The keys of its open questions.
    pub(crate) fn questions(&self) -> Vec<String> {
        self.value["inputRequests"].as_object().map(|open| open.keys().cloned().collect()).unwrap_or_default()
    }

    /// The text of its result.
    pub(crate) fn result_text(&self) -> &str {
        self.value["result"]["content"][0]["text"].as_str().unwrap_or_default()
    }
}

/// One connection.
pub(crate) struct Client {
    address: SocketAddr,
    connection: SendRequest<Full<Bytes>>,
    requests: u64,
    /// What it says it can do. Tasks and forms, unless a test changes it.
    pub(crate) capabilities: Value,
    /// The bearer token that it shows.
    pub(crate) token: Option<String>,
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Result<Self, Trouble> {
        let stream = TcpStream::connect(address).await.map_err(Trouble::lost)?;
        stream.set_nodelay(true).map_err(Trouble::lost)?;
        let (connection, driver) = http1::handshake(TokioIo::new(stream)).await.map_err(Trouble::lost)?;
        // Its errors reach whoever waits for an answer.
        tokio::spawn(driver);
        let capabilities = json!({ "elicitation": {}, "extensions": { "io.modelcontextprotocol/tasks": {} } });
        Ok(Self { address, connection, requests: 0, capabilities, token: None })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// One of the pages beside the endpoint.
    pub(crate) async fn page(&mut self, path: &str) -> Answer {
        let request = Request::get(path).header("host", self.address.to_string()).body(Full::default());
        let request = request.expect("a path that HTTP can carry");
        self.connection.ready().await.expect("an open connection");
        let response = in_time("the head of a page", self.connection.send_request(request)).await.expect("a page");
        let (head, body) = response.into_parts();
        let body = in_time("the body of a page", body.collect()).await.expect("a whole page").to_bytes();
        Answer { status: head.status.as_u16(), headers: head.headers, body }
    }

    /// A whole request in good order, for tests that put something out of order before it is sent.
    pub(crate) fn message(&mut self, method: &str, mut params: Value) -> (Value, Vec<(String, String)>) {
        self.requests += 1;
        let mut headers = vec![
            ("content-type".to_owned(), "application/json".to_owned()),
            ("accept".to_owned(), "application/json, text/event-stream".to_owned()),
            ("mcp-protocol-version".to_owned(), VERSION.to_owned()),
            ("mcp-method".to_owned(), method.to_owned()),
        ];
        if let Some(name) = params.get("name").or_else(|| params.get("taskId")).and_then(Value::as_str) {
            headers.push(("mcp-name".to_owned(), name.to_owned()));
        }
        if let Some(token) = &self.token {
            headers.push(("authorization".to_owned(), format!("Bearer {token}")));
        }
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": VERSION,
            "io.modelcontextprotocol/clientCapabilities": self.capabilities,
        });
        (json!({ "jsonrpc": "2.0", "id": self.requests, "method": method, "params": params }), headers)
    }

    /// Posts exactly this, and gives back the response before its body has come: for streams.
    pub(crate) async fn post(
        &mut self,
        body: impl Into<Bytes>,
        headers: &[(String, String)],
    ) -> Result<Response<Incoming>, Trouble> {
        let mut request = Request::post("/mcp").header("host", self.address.to_string());
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(body.into())).expect("a test sends only what HTTP can carry");
        self.connection.ready().await.map_err(Trouble::lost)?;
        in_time("the head of an answer", self.connection.send_request(request)).await.map_err(Trouble::lost)
    }

    /// Posts exactly this, and waits for the whole answer.
    pub(crate) async fn exchange(
        &mut self,
        body: impl Into<Bytes>,
        headers: &[(String, String)],
    ) -> Result<Answer, Trouble> {
        let sent = body.into();
        let (head, body) = self.post(sent.clone(), headers).await?.into_parts();
        let body = in_time("the body of an answer", body.collect()).await.map_err(Trouble::lost)?.to_bytes();
        let kind = head.headers.get("content-type").and_then(|kind| kind.to_str().ok());
        Asked::of(&sent).hears_body(None, kind, &body);
        Ok(Answer { status: head.status.as_u16(), headers: head.headers, body })
    }

    /// A request and its result, byte for byte.
    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Result<Box<RawValue>, Trouble> {
        #[derive(serde::Deserialize)]
        struct Envelope {
            id: u64,
            result: Box<RawValue>,
        }
        let (message, headers) = self.message(method, params);
        let answer = self.exchange(message.to_string(), &headers).await?;
        match serde_json::from_slice::<Envelope>(&answer.body) {
            Ok(envelope) if answer.status == 200 && envelope.id == self.requests => Ok(envelope.result),
            _ => {
                let body = String::from_utf8_lossy(&answer.body).into_owned();
                Err(Trouble::Refused { status: answer.status, body })
            }
        }
    }

    /// Calls a tool, as a task or not: what the server says.
    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Result<Value, Trouble> {
        let result = self.request("tools/call", json!({ "name": tool, "arguments": arguments })).await?;
        Ok(parsed(&result))
    }

    /// Calls a tool that becomes a task, and gives back its ID.
    pub(crate) async fn create(&mut self, tool: &str, arguments: Value) -> Result<String, Trouble> {
        let result = self.call(tool, arguments).await?;
        match result["taskId"].as_str() {
            Some(id) => Ok(id.to_owned()),
            None => Err(Trouble::Refused { status: 200, body: result.to_string() }),
        }
    }

    pub(crate) async fn get(&mut self, id: &str) -> Result<TaskView, Trouble> {
        let result = self.request("tasks/get", json!({ "taskId": id })).await?;
        Ok(TaskView { value: parsed(&result), text: result.get().to_owned() })
    }

    /// Answers questions of a task: an object of answers by key.
    pub(crate) async fn update(&mut self, id: &str, responses: Value) -> Result<(), Trouble> {
        let params = json!({ "taskId": id, "inputResponses": responses });
        self.request("tasks/update", params).await.map(drop)
    }

    pub(crate) async fn cancel(&mut self, id: &str) -> Result<(), Trouble> {
        self.request("tasks/cancel", json!({ "taskId": id })).await.map(drop)
    }

    /// Looks at a task until it shows what is wanted.
    pub(crate) async fn get_until(
        &mut self,
        id: &str,
        wanted: impl Fn(&TaskView) -> bool,
    ) -> Result<TaskView, Trouble> {
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
}

fn parsed(text: &RawValue) -> Value {
    serde_json::from_str(text.get()).expect("it was parsed before")
}
