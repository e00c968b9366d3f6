//! The server as requestor: tasks that the client runs for it.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::Status;
use crate::jsonrpc::{self, RequestId};
use crate::text;

/// The longest ID of somebody else's task, in bytes.
pub const REMOTE_ID_BYTES_MAX: usize = 1_024;

/// A task of the other side, as it shows it: in the answer to its creation, to `tasks/get` and to `tasks/cancel`, and
/// in `notifications/tasks/status`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteTask {
    /// Its name there.
    pub id: Box<str>,
    /// Where it stands.
    pub status: Status,
    /// What it says about itself.
    pub message: Option<Box<str>>,
    /// For how many milliseconds from its creation it is kept; without limit, or unsaid, when there is none.
    pub ttl_ms: Option<u64>,
    /// How long to wait before asking again.
    pub poll_interval_ms: Option<u64>,
}

/// Why something is no task.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the other side sent no task: {0}")]
pub struct NoTask(String);

impl RemoteTask {
    /// Reads a task. What is there beyond need is not required to be right.
    pub fn parse(raw: &RawValue) -> Result<Self, NoTask> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Members<'a> {
            #[serde(borrow)]
            task_id: text::Text<'a>,
            #[serde(borrow)]
            status: text::Text<'a>,
            #[serde(borrow, default)]
            status_message: Option<&'a RawValue>,
            #[serde(borrow, default)]
            ttl: Option<&'a RawValue>,
            #[serde(borrow, default)]
            poll_interval: Option<&'a RawValue>,
        }
        if !text::is_object(raw) {
            return Err(NoTask("it must be an object".to_owned()));
        }
        let members: Members<'_> = serde_json::from_str(raw.get()).map_err(|error| NoTask(error.to_string()))?;
        let id = members.task_id.0;
        if !(1..=REMOTE_ID_BYTES_MAX).contains(&id.len()) {
            return Err(NoTask(format!("`taskId` must have 1 to {REMOTE_ID_BYTES_MAX} bytes")));
        }
        let status = Status::parse(&members.status.0)
            .ok_or_else(|| NoTask(format!("`status` is '{}'", jsonrpc::shown(&members.status.0))))?;
        Ok(Self {
            id: id.into(),
            status,
            message: members.status_message.and_then(text::string).map(Into::into),
            ttl_ms: members.ttl.and_then(text::milliseconds),
            poll_interval_ms: members.poll_interval.and_then(text::milliseconds),
        })
    }
}

/// `tasks/get`, to the other side.
pub fn get(id: &RequestId, task_id: &str) -> String {
    about(id, "tasks/get", task_id)
}

/// `tasks/result`, to the other side, which answers it when the task has ended.
pub fn result(id: &RequestId, task_id: &str) -> String {
    about(id, "tasks/result", task_id)
}

/// `tasks/cancel`, to an other side that declared it.
pub fn cancel(id: &RequestId, task_id: &str) -> String {
    about(id, "tasks/cancel", task_id)
}

fn about(id: &RequestId, method: &str, task_id: &str) -> String {
    let mut params = String::from("{\"taskId\":");
    text::push_str(&mut params, task_id);
    params.push('}');
    jsonrpc::request(id, method, &params)
}
