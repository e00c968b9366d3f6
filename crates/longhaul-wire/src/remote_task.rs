//! Tasks that the client of a session runs for the server.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::jsonrpc::{self, RequestId};
use crate::text;

/// The longest ID of a client's task, in bytes.
pub const REMOTE_ID_BYTES_MAX: usize = 1_024;

/// A client's task as the client describes it: in the answers to its creation, to `tasks/get` and to `tasks/cancel`, and
/// in `notifications/tasks/status`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteTask {
    pub id: Box<str>,
    pub status: RemoteStatus,
    pub message: Option<Box<str>>,
    /// Retention, counted from the creation. `None` if it is unlimited or not stated.
    pub ttl_ms: Option<u64>,
    pub poll_interval_ms: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RemoteStatus {
    Working,
    InputRequired,
    Completed,
    Failed,
    Cancelled,
}

impl RemoteStatus {
    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "working" => Self::Working,
            "input_required" => Self::InputRequired,
            "completed" => Self::Completed,
            "failed" => Self::Failed,
            "cancelled" => Self::Cancelled,
            _ => return None,
        })
    }

    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// Why a value of the client is not a task.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the other side sent no task: {0}")]
pub struct NotATask(String);

impl RemoteTask {
    /// Reads a task. Only its ID and its status must be valid.
    pub fn parse(raw: &RawValue) -> Result<Self, NotATask> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct TaskMembers<'a> {
            #[serde(borrow)]
            task_id: text::JsonString<'a>,
            #[serde(borrow)]
            status: text::JsonString<'a>,
            #[serde(borrow, default)]
            status_message: Option<&'a RawValue>,
            #[serde(borrow, default)]
            ttl: Option<&'a RawValue>,
            #[serde(borrow, default)]
            poll_interval: Option<&'a RawValue>,
        }
        if !text::is_object(raw) {
            return Err(NotATask("it must be an object".to_owned()));
        }
        let members: TaskMembers<'_> =
            serde_json::from_str(raw.get()).map_err(|error| NotATask(jsonrpc::describe_read_error(&error)))?;
        let id = members.task_id.0;
        if !(1..=REMOTE_ID_BYTES_MAX).contains(&id.len()) {
            return Err(NotATask(format!("`taskId` must have 1 to {REMOTE_ID_BYTES_MAX} bytes")));
        }
        let status = RemoteStatus::parse(&members.status.0)
            .ok_or_else(|| NotATask(format!("`status` is '{}'", jsonrpc::quote(&members.status.0))))?;
        Ok(Self {
            id: id.into(),
            status,
            message: members.status_message.and_then(text::string).map(Into::into),
            ttl_ms: members.ttl.and_then(text::milliseconds),
            poll_interval_ms: members.poll_interval.and_then(text::milliseconds),
        })
    }
}

/// `tasks/get`, to the client.
pub fn get(id: &RequestId, task_id: &str) -> String {
    about(id, "tasks/get", task_id)
}

/// `tasks/result`, to the client, which answers it when the task has ended.
pub fn result(id: &RequestId, task_id: &str) -> String {
    about(id, "tasks/result", task_id)
}

/// `tasks/cancel`, to a client that declared it.
pub fn cancel(id: &RequestId, task_id: &str) -> String {
    about(id, "tasks/cancel", task_id)
}

fn about(id: &RequestId, method: &str, task_id: &str) -> String {
    let mut params = String::from("{\"taskId\":");
    text::push_str(&mut params, task_id);
    params.push('}');
    jsonrpc::request(id, method, &params)
}
