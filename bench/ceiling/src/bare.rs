//! The bare endpoint: it parses the envelope and sends a constant response, except for the request ID and the task ID.

use axum::{Router, body::Bytes, response::Response, routing::post};

use crate::{answer, envelope::Envelope};

const CREATED: &str = concat!(
    r#"{"resultType":"task","taskId":"01982f3b5a7c6e1d0f9b8a7c6d5e4f3a2b1c0d9e8f7a","status":"working","#,
    r#""createdAt":"2026-07-28T10:30:00.000Z","lastUpdatedAt":"2026-07-28T10:30:00.000Z","ttlMs":3600000,"pollIntervalMs":1000}"#,
);
const COMPLETED_BEFORE_ID: &str = r#"{"resultType":"complete","taskId":""#;
const COMPLETED_AFTER_ID: &str = concat!(
    r#"","status":"completed","createdAt":"2026-07-28T10:30:00.000Z","lastUpdatedAt":"2026-07-28T10:30:00.002Z","#,
    r#""ttlMs":3600000,"pollIntervalMs":1000,"result":{"content":[{"type":"text","#,
    r#""text":"The quick brown fox jumps over the lazy dog, and then it waits."}],"resultType":"complete"}}"#,
);

pub fn router() -> Router {
    Router::new().route("/mcp", post(answer))
}

async fn answer(body: Bytes) -> Response {
    let Some(request) = Envelope::parse(&body) else {
        return answer::invalid();
    };
    match &*request.method {
        "tools/call" if request.params.name == "echo" => answer::result(request.id, CREATED.as_bytes()),
        "tasks/get" if !request.params.task_id.is_empty() => {
            let task_id = request.params.task_id.as_bytes();
            let task = [COMPLETED_BEFORE_ID.as_bytes(), task_id, COMPLETED_AFTER_ID.as_bytes()];
            answer::result(request.id, &task.concat())
        }
        _ => answer::unknown(request.id),
    }
}
