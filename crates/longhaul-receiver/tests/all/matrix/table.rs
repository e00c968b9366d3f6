//! What each generation shows, in a form that can be compared with the specification.
//!
//! The ID and the times of a task differ from run to run. `bare` checks and removes them.

use serde_json::{Value, json};

use crate::matrix::generation::TestGeneration::{self, Core2025, Ext2026, Lesson, Sep1686};
use crate::matrix::kit::KEPT_MS;
use longhaul_task::{COLLECT_MS_MIN, Policy};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Answer,
    /// The tool returns a result with `isError`.
    ToolError,
    ProtocolError,
    CancelledBy(TestGeneration),
}

pub(crate) struct TaskEndings {
    pub(crate) get: Value,
    /// The response to `tasks/result`, requested before or after the end.
    pub(crate) result: Value,
    pub(crate) list: Value,
    pub(crate) cancel: Value,
    pub(crate) push: Value,
}

#[rustfmt::skip]
pub(crate) fn seen(by: TestGeneration, ending: Ending) -> TaskEndings {
    use Ending::{Answer, CancelledBy, ProtocolError, ToolError};
    let well_done = json!({ "content": [{ "type": "text", "text": "well done" }] });
    let no_luck   = json!({ "content": [{ "type": "text", "text": "no luck" }], "isError": true });
    let broken    = json!({ "code": -32_001, "message": "broken" });
    let cancelled = json!({ "code": -32_603, "message": "The task was cancelled.", "data": { "code": "CANCELLED" } });

    match (by, ending) {
        //                           tasks/get, tasks/list, push:                            tasks/result:
        //                           status       message          and inlined
        (Core2025, Answer)         => core2025("completed", None,            json!({ "result": related(well_done) })),
        (Core2025, ToolError)      => core2025("failed",    Some("no luck"), json!({ "result": related(no_luck) })),
        (Core2025, ProtocolError)  => core2025("failed",    Some("broken"),  json!({ "error": broken })),
        (Core2025, CancelledBy(_)) => core2025("cancelled", None,            json!({ "error": cancelled })),

        (Ext2026, Answer)          => ext2026("completed", None,           json!({ "result": complete(well_done) })),
        (Ext2026, ToolError)       => ext2026("completed", None,           json!({ "result": complete(no_luck) })),
        (Ext2026, ProtocolError)   => ext2026("failed",    Some("broken"), json!({ "error": broken })),
        (Ext2026, CancelledBy(_))  => ext2026("cancelled", None,           json!({})),

        (Sep1686, Answer)          => sep1686("completed", None,           Some(well_done)),
        (Sep1686, ToolError)       => sep1686("completed", None,           Some(no_luck)),
        (Sep1686, ProtocolError)   => sep1686("failed",    Some("broken"), None),
        (Sep1686, CancelledBy(_))  => sep1686("cancelled", None,           None),

        (Lesson, Answer)           => lesson("completed", None,           json!({ "result": related(well_done) })),
        (Lesson, ToolError)        => lesson("failed",    Some("no luck"), json!({ "result": related(no_luck) })),
        (Lesson, ProtocolError)    => lesson("failed",    Some("broken"), json!({ "error": broken })),
        (Lesson, CancelledBy(_))   => lesson("cancelled", None,           json!({ "error": cancelled })),
    }
}

/// What a client sees of a task that has not ended. SEP-1686 counts the retention from the end, and the others from the
/// creation: one of them shows how long a task of the other is kept at most, or at least.
pub(crate) fn working(by: TestGeneration, maker: TestGeneration) -> Value {
    let mut shown = match by {
        Core2025 => task_2025("working", None),
        Ext2026 => complete(task_2026("working", None)),
        Sep1686 => with(related_1686(task_1686("working", None)), json!({ "pollFrequency": 50 })),
        Lesson => task_of_lesson("working", None),
    };
    let kept = ["ttl", "ttlMs", "keepAlive"].into_iter().find(|name| shown.get(name).is_some()).unwrap();
    if (by == Sep1686) != (maker == Sep1686) {
        shown[kept] = json!(if by == Sep1686 { COLLECT_MS_MIN } else { Policy::default().life_ms_max + KEPT_MS });
    }
    json!({ "result": shown })
}

/// The response to a request for the result of a task that has not ended, where that request does not wait.
pub(crate) fn too_early(by: TestGeneration) -> Option<Value> {
    let why = "Cannot retrieve result: Task status is 'working', not 'completed'";
    (by == Sep1686).then(|| json!({ "error": { "code": -32_602, "message": why } }))
}

/// The response to the `tasks/cancel` that ends the task.
pub(crate) fn cancels(by: TestGeneration) -> Value {
    match by {
        // SEP-1686 has no such request of its own.
        Core2025 | Sep1686 => json!({ "result": task_2025("cancelled", None) }),
        Ext2026 => json!({ "result": complete(json!({})) }),
        Lesson => json!({ "result": task_of_lesson("cancelled", None) }),
    }
}

/// The response of each operation for a task that does not exist.
pub(crate) fn gone(by: TestGeneration) -> TaskEndings {
    let unknown_to =
        |verb| json!({ "error": { "code": -32_602, "message": format!("Failed to {verb} task: Task not found") } });
    let unknown = unknown_to("retrieve");
    let (result, list) = match by {
        Core2025 | Sep1686 | Lesson => (unknown.clone(), json!({ "result": { "tasks": [] } })),
        Ext2026 => (no_method("tasks/result"), no_method("tasks/list")),
    };
    TaskEndings { get: unknown, result, list, cancel: unknown_to("cancel"), push: Value::Null }
}

/// Every view has the status and the message; only `tasks/result` has the payload. Cancelling a task that has ended
/// is an error.
fn core2025(status: &str, message: Option<&str>, result: Value) -> TaskEndings {
    let task = task_2025(status, message);
    let ended = format!("Cannot cancel task: already in terminal status '{status}'");
    TaskEndings {
        get: json!({ "result": task }),
        result,
        list: json!({ "result": { "tasks": [task] } }),
        cancel: json!({ "error": { "code": -32_602, "message": ended } }),
        push: task,
    }
}

/// Every view has the payload. There is no `tasks/result` and no `tasks/list`. `tasks/cancel` is always acknowledged.
fn ext2026(status: &str, message: Option<&str>, inlined: Value) -> TaskEndings {
    let task = with(task_2026(status, message), inlined);
    TaskEndings {
        get: json!({ "result": complete(task.clone()) }),
        result: no_method("tasks/result"),
        list: no_method("tasks/list"),
        cancel: json!({ "result": complete(json!({})) }),
        push: task,
    }
}

/// Every view has the status and an error; only `tasks/result` of a completed task has the payload. Nothing is pushed: the
/// "push" is what the poll shows.
fn sep1686(status: &str, error: Option<&str>, result: Option<Value>) -> TaskEndings {
    let task = task_1686(status, error);
    // As seen by Core2025, where a tool's error is a failure.
    let is_tool_error = result.as_ref().is_some_and(|result| result["isError"] == true);
    let ended =
        format!("Cannot cancel task: already in terminal status '{}'", if is_tool_error { "failed" } else { status });
    let why = format!("Cannot retrieve result: Task status is '{status}', not 'completed'");
    let shown = related_1686(task.clone());
    TaskEndings {
        get: json!({ "result": shown }),
        result: match result {
            Some(result) => json!({ "result": related_1686(result) }),
            None => json!({ "error": { "code": -32_602, "message": why } }),
        },
        list: json!({ "result": { "tasks": [task] } }),
        cancel: json!({ "error": { "code": -32_602, "message": ended } }),
        push: shown,
    }
}

/// Every view has the state and an error. A cancellation that comes too late is answered like one in time.
fn lesson(state: &str, error: Option<&str>, result: Value) -> TaskEndings {
    let task = task_of_lesson(state, error);
    TaskEndings {
        get: json!({ "result": task }),
        result,
        list: json!({ "result": { "tasks": [task] } }),
        cancel: json!({ "result": task }),
        push: json!({ "taskId": "ID", "state": state }),
    }
}

/// A task that another generation made is kept for the rest of its time from its creation, and no time has passed.
fn task_1686(status: &str, error: Option<&str>) -> Value {
    let task = json!({ "taskId": "ID", "status": status, "keepAlive": KEPT_MS });
    with(task, error.map_or(json!({}), |error| json!({ "error": error })))
}

fn task_of_lesson(state: &str, error: Option<&str>) -> Value {
    let task = json!({ "taskId": "ID", "state": state, "ttl": KEPT_MS });
    with(task, error.map_or(json!({}), |error| json!({ "error": error, "message": error })))
}

fn related_1686(result: Value) -> Value {
    with(result, json!({ "_meta": { "modelcontextprotocol.io/related-task": { "taskId": "ID" } } }))
}

fn task_2025(status: &str, message: Option<&str>) -> Value {
    let task = json!({ "taskId": "ID", "status": status, "ttl": KEPT_MS, "pollInterval": 50 });
    with(task, message.map_or(json!({}), |message| json!({ "statusMessage": message })))
}

fn task_2026(status: &str, message: Option<&str>) -> Value {
    let task = json!({ "taskId": "ID", "status": status, "ttlMs": KEPT_MS, "pollIntervalMs": 50 });
    with(task, message.map_or(json!({}), |message| json!({ "statusMessage": message })))
}

fn related(result: Value) -> Value {
    with(result, json!({ "_meta": { "io.modelcontextprotocol/related-task": { "taskId": "ID" } } }))
}

fn complete(result: Value) -> Value {
    with(result, json!({ "resultType": "complete" }))
}

fn no_method(method: &str) -> Value {
    json!({ "error": { "code": -32_601, "message": format!("Method not found: {method}") } })
}

fn with(mut value: Value, more: Value) -> Value {
    let (Value::Object(members), Value::Object(more)) = (&mut value, more) else { panic!("objects") };
    members.extend(more);
    value
}

/// The value without the ID and the times, which must be there.
pub(crate) fn bare(mut value: Value, id: &str) -> Value {
    strip(&mut value, id);
    value
}

fn strip(value: &mut Value, id: &str) {
    match value {
        Value::Object(members) => {
            if let Some(named) = members.get_mut("taskId") {
                assert_eq!(named, id);
                *named = json!("ID");
            }
            if members.contains_key("status") && !members.contains_key("keepAlive") {
                let mut time = |name: &str| -> jiff::Timestamp {
                    let time = members.remove(name).unwrap_or_else(|| panic!("no {name}"));
                    time.as_str().and_then(|time| time.parse().ok()).unwrap_or_else(|| panic!("{name}: {time}"))
                };
                assert!(time("createdAt") <= time("lastUpdatedAt"));
            }
            members.values_mut().for_each(|member| strip(member, id));
        }
        Value::Array(members) => members.iter_mut().for_each(|member| strip(member, id)),
        _ => {}
    }
}
