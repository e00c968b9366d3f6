//! Checks every message that a server sends in a test against the schema of its revision. Each test client records its
//! requests in [`SentRequests`], which then knows the schemas of the responses.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::VERSION;
use crate::official::must_fit;

// Names of schema files: the tasks extension, and the two generations that no revision contains.
const TASKS: &str = "ext-tasks-2026-07-28";
const SEP: &str = "sep1686";
const LESSON: &str = "lesson";

/// The requests that a client has sent. The schema of a response depends on its request. Clones share the requests.
#[derive(Debug, Clone, Default)]
pub struct SentRequests {
    by_id: Arc<Mutex<HashMap<String, SentRequest>>>,
}

#[derive(Debug, Clone)]
struct SentRequest {
    method: String,
    is_stateless: bool,
}

impl SentRequests {
    pub fn of(body: &[u8]) -> Self {
        let sent_requests = Self::default();
        sent_requests.record_sent(body);
        sent_requests
    }

    /// Records the requests in a body: a message, a batch, or invalid bytes.
    pub fn record_sent(&self, body: &[u8]) {
        match serde_json::from_slice(body) {
            Ok(Value::Array(messages)) => messages.iter().for_each(|message| self.record(message)),
            Ok(message) => self.record(&message),
            Err(_) => {}
        }
    }

    fn record(&self, message: &Value) {
        if let (Some(id), Some(method)) = (message.get("id"), message["method"].as_str()) {
            let version = &message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
            let request = SentRequest { method: method.to_owned(), is_stateless: !version.is_null() };
            self.by_id.lock().unwrap().insert(id.to_string(), request);
        }
    }

    /// Checks the body of an HTTP response: a message, a batch, or events with a message each. Other content is
    /// ignored. `revision` is that of the session.
    pub fn check_received_body(&self, revision: Option<&str>, content_type: Option<&str>, body: &[u8]) {
        match content_type {
            Some("application/json") => match serde_json::from_slice(body) {
                Ok(Value::Array(messages)) => {
                    for message in &messages {
                        self.check_received(revision, message);
                    }
                }
                Ok(message) => self.check_received(revision, &message),
                Err(error) => panic!("{error} in {:?}", String::from_utf8_lossy(body)),
            },
            Some("text/event-stream") => {
                let text = std::str::from_utf8(body).expect("UTF-8");
                for data in text.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim) {
                    if !data.is_empty() {
                        self.check_received(revision, &serde_json::from_str(data).expect("JSON"));
                    }
                }
            }
            _ => {}
        }
    }

    /// Checks a message of a server, in a session of this revision or without a session.
    pub fn check_received(&self, revision: Option<&str>, message: &Value) {
        let revision = revision.unwrap_or(VERSION);
        let Some(method) = message["method"].as_str() else { return self.check_response(revision, message) };
        match method {
            "notifications/tasks/created" => return must_fit(SEP, "TaskCreatedNotification", message),
            "notifications/tasks/updated" => return must_fit(LESSON, "UpdatedNotification", message),
            _ => {}
        }
        let is_stateless = matches!(method, "notifications/tasks" | "notifications/subscriptions/acknowledged");
        if is_stateless || revision == VERSION {
            check_stateless_notification(method, message);
        } else {
            check_session_message(revision, message);
        }
    }

    fn check_response(&self, session_revision: &str, message: &Value) {
        let request = message.get("id").and_then(|id| self.by_id.lock().unwrap().get(&id.to_string()).cloned());
        let is_stateless = request.as_ref().is_some_and(|request| request.is_stateless);
        let revision = match message["result"]["protocolVersion"].as_str() {
            _ if is_stateless => VERSION,
            Some(agreed) if request.as_ref().is_some_and(|request| request.method == "initialize") => agreed,
            _ => session_revision,
        };
        if message.get("error").is_some() {
            return check_error(revision, message);
        }
        let no_request = || panic!("a response to a request that was not sent: {message}");
        let method = request.map_or_else(no_request, |request| request.method);
        if revision == VERSION {
            check_stateless_result(&method, message);
        } else {
            check_session_result(revision, &method, message);
        }
    }
}

/// The name of the schema file of a revision.
fn schema_file(revision: &str) -> String {
    format!("mcp-{revision}")
}

fn check_error(revision: &str, message: &Value) {
    // Revisions before 2025-11-25 do not define an error without an ID.
    let defines_all_errors = revision == VERSION || revision == "2025-11-25";
    if defines_all_errors {
        must_fit(&schema_file(revision), "JSONRPCErrorResponse", message);
    } else if message.get("id").is_some() {
        must_fit(&schema_file(revision), "JSONRPCError", message);
    }
    let definition = match message["error"]["code"].as_i64() {
        Some(-32_020) => "HeaderMismatchError",
        Some(-32_021) => "MissingRequiredClientCapabilityError",
        Some(-32_022) => "UnsupportedProtocolVersionError",
        _ => return,
    };
    assert_eq!(revision, VERSION, "{revision} does not define {definition}: {message}");
    must_fit(&schema_file(VERSION), definition, message);
}

fn check_stateless_notification(method: &str, message: &Value) {
    let core = schema_file(VERSION);
    assert!(message.get("id").is_none(), "a server asks nothing in the stateless era: {message}");
    must_fit(&core, "JSONRPCNotification", message);
    if method == "notifications/tasks" {
        return must_fit(TASKS, "TaskStatusNotification", message);
    }
    must_fit(&core, "ServerNotification", message);
    if method == "notifications/subscriptions/acknowledged" {
        must_fit(TASKS, "TaskSubscriptionAcknowledgedNotifications", &message["params"]["notifications"]);
    }
}

fn check_stateless_result(method: &str, message: &Value) {
    let core = schema_file(VERSION);
    must_fit(&core, "JSONRPCResultResponse", message);
    let result = &message["result"];
    let (file, definition) = match (method, result["resultType"].as_str()) {
        ("server/discover", _) => (core.as_str(), "DiscoverResult"),
        ("tools/list", _) => (core.as_str(), "ListToolsResult"),
        ("prompts/list", _) => (core.as_str(), "ListPromptsResult"),
        ("resources/list", _) => (core.as_str(), "ListResourcesResult"),
        ("resources/templates/list", _) => (core.as_str(), "ListResourceTemplatesResult"),
        ("completion/complete", _) => (core.as_str(), "CompleteResult"),
        ("tools/call", Some("task")) => (TASKS, "CreateTaskResult"),
        ("tools/call" | "prompts/get" | "resources/read", Some("input_required")) => {
            (core.as_str(), "InputRequiredResult")
        }
        ("tools/call", _) => (core.as_str(), "CallToolResult"),
        ("prompts/get", _) => (core.as_str(), "GetPromptResult"),
        ("resources/read", _) => (core.as_str(), "ReadResourceResult"),
        ("tasks/get", _) => (TASKS, "GetTaskResult"),
        ("tasks/update", _) => (TASKS, "UpdateTaskResult"),
        ("tasks/cancel", _) => (TASKS, "CancelTaskResult"),
        ("subscriptions/listen", _) => (core.as_str(), "SubscriptionsListenResult"),
        (other, _) => panic!("no schema is known for the result of {other}: {message}"),
    };
    must_fit(file, definition, result);
    if method == "tasks/get" && result["status"] == "completed" {
        must_fit(&core, task_result(&result["result"]), &result["result"]);
    }
}

/// The definition of a task's result, which is that of the request that the task was made of.
fn task_result(result: &Value) -> &'static str {
    match result {
        _ if result.get("messages").is_some() => "GetPromptResult",
        _ if result.get("contents").is_some() => "ReadResourceResult",
        _ => "CallToolResult",
    }
}

fn check_session_message(revision: &str, message: &Value) {
    let kind = if message.get("id").is_some() { "Request" } else { "Notification" };
    must_fit(&schema_file(revision), &format!("JSONRPC{kind}"), message);
    must_fit(&schema_file(revision), &format!("Server{kind}"), message);
}

/// The schema of a result in a generation that no revision contains. The fields of the result show which one it is.
fn schema_without_revision(method: &str, result: &Value) -> Option<(&'static str, &'static str)> {
    let task = result["tasks"].get(0).unwrap_or(result);
    match method {
        "tools/call" | "prompts/get" | "resources/read" if result["_meta"].get("task").is_some() => {
            Some((LESSON, "CreateTaskResult"))
        }
        "tasks/status" => Some((LESSON, "StatusResult")),
        "tasks/delete" => Some((SEP, "DeleteTaskResult")),
        "tasks/list" if task.get("keepAlive").is_some() => Some((SEP, "ListTasksResult")),
        "tasks/list" if task.get("state").is_some() => Some((LESSON, "ListTasksResult")),
        _ if task.get("keepAlive").is_some() => Some((SEP, "GetTaskResult")),
        _ if task.get("state").is_some() => Some((LESSON, "StatusResult")),
        _ => None,
    }
}

fn check_session_result(revision: &str, method: &str, message: &Value) {
    let envelope = if revision == "2025-11-25" { "JSONRPCResultResponse" } else { "JSONRPCResponse" };
    must_fit(&schema_file(revision), envelope, message);
    let result = &message["result"];
    if let Some((file, definition)) = schema_without_revision(method, result) {
        return must_fit(file, definition, result);
    }
    let definition = match method {
        "initialize" => "InitializeResult",
        "tools/list" => "ListToolsResult",
        "tools/call" if result.get("task").is_some() => "CreateTaskResult",
        "tools/call" => "CallToolResult",
        "tasks/result" => task_result(result),
        "prompts/list" => "ListPromptsResult",
        "prompts/get" => "GetPromptResult",
        "resources/list" => "ListResourcesResult",
        "resources/templates/list" => "ListResourceTemplatesResult",
        "resources/read" => "ReadResourceResult",
        "completion/complete" => "CompleteResult",
        "tasks/get" => "GetTaskResult",
        "tasks/list" => "ListTasksResult",
        "tasks/cancel" => "CancelTaskResult",
        "ping" | "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe" => "EmptyResult",
        other => panic!("no schema is known for the result of {other}: {message}"),
    };
    must_fit(&schema_file(revision), definition, result);
}
