//! A client over one connection, as thin as thousands of them need it.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::net::SocketAddr;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};
use tokio::net::TcpStream;

/// A connection, and the session that its requests belong to.
pub(crate) struct RawClient {
    connection: SendRequest<Full<Bytes>>,
    address: SocketAddr,
    token: Option<String>,
    pub(crate) session: Option<String>,
}

impl RawClient {
    pub(crate) async fn open(address: SocketAddr, token: Option<&str>) -> Self {
        let socket = TcpStream::connect(address).await.expect("a server that listens");
        socket.set_nodelay(true).unwrap();
        let (connection, driver) = http1::handshake(TokioIo::new(socket)).await.expect("HTTP");
        tokio::spawn(driver);
        Self { connection, address, token: token.map(str::to_owned), session: None }
    }

    /// Another connection of the same session.
    pub(crate) async fn again(&self) -> Self {
        Self { session: self.session.clone(), ..Self::open(self.address, self.token.as_deref()).await }
    }

    /// Sends a request. An error if the server has closed the connection.
    pub(crate) async fn send(
        &mut self,
        method: &str,
        headers: &[(&str, &str)],
        body: String,
    ) -> hyper::Result<Response<Incoming>> {
        let mut request = Request::builder()
            .method(method)
            .uri("/mcp")
            .header("host", self.address.to_string())
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.connection.ready().await?;
        self.connection.send_request(request.body(Full::new(body.into())).expect("a request")).await
    }

    /// Opens a session for the requests of this client. False if it was refused.
    pub(crate) async fn initialize(&mut self) -> bool {
        let info = json!({ "name": "test", "version": "1" });
        let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info });
        let Ok(answer) = self.send("POST", &[], request("initialize", &hello)).await else { return false };
        self.session = answer.headers().get("mcp-session-id").map(|id| id.to_str().expect("text").to_owned());
        answer.into_body().collect().await.is_ok() && self.session.is_some()
    }

    /// The response to a request in the session; an error if there is none.
    pub(crate) async fn ask(&mut self, method: &str, params: &Value) -> Value {
        message(self.send("POST", &[], request(method, params)).await).await
    }

    /// The response to a request of the stateless era, about a tool or a task.
    pub(crate) async fn ask_stateless(&mut self, method: &str, name: &str, body: String) -> Value {
        message(self.send_stateless(method, name, body).await).await
    }

    pub(crate) async fn send_stateless(
        &mut self,
        method: &str,
        name: &str,
        body: String,
    ) -> hyper::Result<Response<Incoming>> {
        let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", method), ("mcp-name", name)];
        self.send("POST", &headers, body).await
    }
}

pub(crate) fn request(method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string()
}

/// The last message of a response, which is one message or a stream of events. An error if the connection broke.
pub(crate) async fn message(response: hyper::Result<Response<Incoming>>) -> Value {
    let broken = |error: hyper::Error| json!({ "error": { "message": error.to_string() } });
    let response = match response {
        Ok(response) => response,
        Err(error) => return broken(error),
    };
    let body = match response.into_body().collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => return broken(error),
    };
    let text = std::str::from_utf8(&body).expect("UTF-8");
    let last = text.lines().filter_map(|line| line.strip_prefix("data: ")).rfind(|data| !data.is_empty());
    serde_json::from_str(last.unwrap_or(text)).unwrap_or_else(|error| panic!("{error}: {text:?}"))
}

/// The test's process has one end of every connection.
pub(crate) fn raise_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).expect("its own maximum");
}

/// The resident memory of a process.
pub(crate) fn resident_kb(pid: i32) -> usize {
    status_kb(pid, "VmRSS:")
}

/// The part of the resident memory that is mapped files.
pub(crate) fn resident_file_kb(pid: i32) -> usize {
    status_kb(pid, "RssFile:")
}

fn status_kb(pid: i32, name: &str) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("its memory");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}
