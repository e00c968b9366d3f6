//! Checks responses. A server that is fast because it sends wrong responses must fail the run.

use anyhow::{Context, bail};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::request::ECHO_TEXT;

/// The status of an echo task. Any other status is an error, because these tasks neither fail nor ask nor are
/// cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Working,
    Completed,
}

#[derive(Deserialize)]
struct Response<'a> {
    jsonrpc: &'a str,
    id: u64,
    #[serde(borrow)]
    result: Option<TaskFields<'a>>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TaskFields<'a> {
    result_type: &'a str,
    task_id: Option<&'a str>,
    status: Option<&'a str>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
}

/// The ID of the task in a response to `tools/call`.
///
/// # Errors
/// If the response is an error, an ordinary result, or for another request.
pub fn created(body: &[u8], id: u64) -> anyhow::Result<&str> {
    let task = task(body, id, "task")?;
    check_status(body, &task)?;
    task.task_id.with_context(|| not_a_task(body, "no taskId"))
}

/// The status of the task in a response to `tasks/get`.
///
/// # Errors
/// If the response is an error, another task, or a completed task without the echoed text.
pub fn status(body: &[u8], id: u64, task_id: &str) -> anyhow::Result<Status> {
    let task = task(body, id, "complete")?;
    if task.task_id != Some(task_id) {
        bail!(not_a_task(body, "another taskId"));
    }
    check_status(body, &task)
}

fn task<'a>(body: &'a [u8], id: u64, result_type: &str) -> anyhow::Result<TaskFields<'a>> {
    let answer: Response<'a> = serde_json::from_slice(body).with_context(|| not_a_task(body, "not understood"))?;
    if answer.jsonrpc != "2.0" || answer.id != id {
        bail!(not_a_task(body, "the response is for another request"));
    }
    if answer.error.is_some() {
        bail!(not_a_task(body, "an error"));
    }
    match answer.result {
        Some(task) if task.result_type == result_type => Ok(task),
        _ => bail!(not_a_task(body, "another resultType")),
    }
}

fn check_status(body: &[u8], task: &TaskFields<'_>) -> anyhow::Result<Status> {
    match (task.status, task.result) {
        (Some("working"), None) => Ok(Status::Working),
        (Some("completed"), Some(result)) if result.get().contains(ECHO_TEXT) => Ok(Status::Completed),
        // A task may be `completed` in the response to its creation, which has no field for the result.
        (Some("completed"), None) if task.result_type == "task" => Ok(Status::Completed),
        _ => bail!(not_a_task(body, "unexpected status or result")),
    }
}

fn not_a_task(body: &[u8], why: &str) -> String {
    format!("a response is not a task ({why}): {}", String::from_utf8_lossy(body))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get_answer(status: &str, text: &str) -> String {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"result":{{"resultType":"complete","taskId":"a","status":"{status}","ttlMs":null,
            "result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}}}"#
        )
    }

    #[test]
    fn a_created_task_is_accepted() {
        let body = br#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"task","taskId":"a","status":"working"}}"#;
        assert_eq!(created(body, 1).unwrap(), "a");
    }

    #[test]
    fn an_ordinary_result_fails_the_run() {
        let body = br#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[]}}"#;
        assert!(created(body, 1).is_err());
    }

    #[test]
    fn an_error_fails_the_run() {
        let body = br#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no such task"}}"#;
        assert!(created(body, 1).is_err());
        assert!(status(body, 1, "a").is_err());
    }

    #[test]
    fn another_task_or_another_request_fails_the_run() {
        let body = get_answer("completed", ECHO_TEXT);
        assert!(status(body.as_bytes(), 1, "b").is_err());
        assert!(status(body.as_bytes(), 2, "a").is_err());
    }

    #[test]
    fn a_completed_task_must_contain_the_echoed_text() {
        let right = get_answer("completed", ECHO_TEXT);
        assert_eq!(status(right.as_bytes(), 1, "a").unwrap(), Status::Completed);
        assert!(status(get_answer("completed", "x").as_bytes(), 1, "a").is_err());
        assert!(status(get_answer("failed", ECHO_TEXT).as_bytes(), 1, "a").is_err());
    }
}
