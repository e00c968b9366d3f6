//! Responses: a task of the tasks extension, or a JSON-RPC error.

use axum::http::{StatusCode, header::CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use serde_json::value::RawValue;

/// The `ttlMs` of every task.
pub const TTL_MS: i64 = 3_600_000;
/// The `pollIntervalMs` of every task.
pub const POLL_INTERVAL_MS: i64 = 1_000;

/// The row of a task.
pub struct Task<'a> {
    pub id: &'a str,
    pub created_ms: i64,
    pub updated_ms: i64,
    /// `None` until the task is completed.
    pub result: Option<&'a str>,
}

impl Task<'_> {
    /// The response to `tools/call`.
    pub fn created(&self) -> String {
        format!("{{\"resultType\":\"task\",{}}}", self.fields())
    }

    /// The response to `tasks/get`.
    pub fn detailed(&self) -> String {
        let fields = self.fields();
        match self.result {
            None => format!("{{\"resultType\":\"complete\",{fields}}}"),
            Some(result) => {
                format!("{{\"resultType\":\"complete\",{fields},\"result\":{result}}}")
            }
        }
    }

    fn fields(&self) -> String {
        let Self { id, result, .. } = self;
        let status = if result.is_some() { "completed" } else { "working" };
        let (created, updated) = (time(self.created_ms), time(self.updated_ms));
        format!(
            "\"taskId\":\"{id}\",\"status\":\"{status}\",\"createdAt\":\"{created:.3}\",\
             \"lastUpdatedAt\":\"{updated:.3}\",\"ttlMs\":{TTL_MS},\"pollIntervalMs\":{POLL_INTERVAL_MS}"
        )
    }
}

fn time(ms: i64) -> Timestamp {
    Timestamp::from_millisecond(ms).unwrap_or(Timestamp::MAX)
}

/// The result of `echo`.
pub fn echo_result(text: &str) -> String {
    let text = serde_json::Value::from(text);
    format!("{{\"content\":[{{\"type\":\"text\",\"text\":{text}}}],\"resultType\":\"complete\"}}")
}

/// A response with a rendered result.
pub fn result(id: &RawValue, result: &[u8]) -> Response {
    let id = id.get().as_bytes();
    json(StatusCode::OK, [b"{\"jsonrpc\":\"2.0\",\"id\":", id, b",\"result\":", result, b"}"].concat())
}

/// The error -32602, for an unknown task or tool.
pub fn unknown(id: &RawValue) -> Response {
    let id = id.get();
    json(
        StatusCode::OK,
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":-32602,\"message\":\"Unknown task or tool\"}}}}"
        )
        .into_bytes(),
    )
}

/// The error -32600, for any other message.
pub fn invalid() -> Response {
    json(
        StatusCode::BAD_REQUEST,
        br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request"}}"#.to_vec(),
    )
}

fn json(status: StatusCode, body: Vec<u8>) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], body).into_response()
}
