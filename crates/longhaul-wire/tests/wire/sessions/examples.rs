//! The JSON examples of the tasks document of 2025-11-25: each is read, and what a server sends is produced and
//! compared.

use longhaul_task::transition::Cancel;
use longhaul_task::{Event, Outcome, Phase, Surroundings, Task, TaskId, Timestamp};
use longhaul_wire::ServerFeatures;
use longhaul_wire::remote_task::{RemoteStatus, RemoteTask};
use longhaul_wire::tool::{TaskSupport, ToolDeclaration};
use longhaul_wire::{
    Capability, ClientNotification, Operation, Peer, TaskRequest, TaskView, Ttl, initialize, jsonrpc, refusal,
};
use serde_json::{Value, json};

use super::{Incoming, LATEST, RELATED_TASK, TASKS, asked, id, incoming, peer, to, told};
use crate::common::*;

const TASK_ID: &str = "786512e2-9e0d-44bd-8f29-789f320fe840";

/// Ten minutes after the task was made.
fn at_ten_forty(mut task: Task, message: Option<&str>) -> Task {
    task.updated_at = CREATED.plus_ms(600_000);
    task.message = message.map(Into::into);
    task
}

fn seen(task: &Task) -> TaskView<'_> {
    TaskView { poll_interval_ms: 5_000, ..TaskView::of(task) }
}

/// A task as the document shows it: made at 10:30, changed at 10:40, polled every five seconds.
fn shown(status: &str, more: Value) -> Value {
    let mut task = json!({
        "taskId": TASK_ID, "status": status, "ttl": 30000, "pollInterval": 5000,
        "createdAt": "2025-11-25T10:30:00Z", "lastUpdatedAt": "2025-11-25T10:40:00Z",
    });
    let Value::Object(more) = more else { panic!("no members: {more}") };
    task.as_object_mut().unwrap().extend(more);
    task
}

#[allow(clippy::needless_pass_by_value, reason = "so that a test can write `json!` in the call")]
fn response(id: u64, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// The example and what we say in its place are the same, but for two things. Our times have milliseconds. And the
/// document's tasks are shown as working long after their `ttl`; ours never promises less than it keeps.
fn assert_same(produced: &str, example: &Value) {
    fn normal(value: &mut Value) {
        match value {
            Value::Object(members) => {
                for (name, member) in members.iter_mut() {
                    match name.as_str() {
                        "createdAt" | "lastUpdatedAt" => {
                            *member = member.as_str().unwrap().replace(".000Z", "Z").into();
                        }
                        "ttl" => *member = member.is_u64().into(),
                        _ => normal(member),
                    }
                }
            }
            Value::Array(elements) => elements.iter_mut().for_each(normal),
            _ => {}
        }
    }
    let (mut produced, mut example) = (value(produced), example.clone());
    normal(&mut produced);
    normal(&mut example);
    assert_eq!(produced, example);
}

#[test]
fn the_servers_capabilities() {
    let offer = initialize::Offer {
        name: "longhaul",
        title: None,
        version: "1",
        instructions: None,
        features: ServerFeatures::default(),
        lists_tasks: true,
    };
    let message = value(&initialize::answer(&to(&1.into(), LATEST), &offer));
    let example = json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } });
    assert_eq!(message["result"]["capabilities"]["tasks"], example);
}

#[test]
fn the_clients_capabilities() {
    let example = json!({
        "protocolVersion": "2025-11-25",
        "clientInfo": { "name": "c", "version": "1" },
        "capabilities": { "tasks": { "list": {}, "cancel": {}, "requests": {
            "sampling": { "createMessage": {} },
            "elicitation": { "create": {} }
        } } }
    });
    let params = raw(&example.to_string());
    let Peer { capabilities, .. } = initialize::Initialize::parse(Some(&params)).unwrap().peer;
    for capability in
        [Capability::SamplingTasks, Capability::ElicitationTasks, Capability::CancelTasks, Capability::ListTasks]
    {
        assert!(capabilities.has(capability), "{capability:?}");
    }
    assert!(!capabilities.has(Capability::Sampling), "to run it as a task is not yet to offer it");
}

#[test]
fn a_creation() {
    let request = asked(
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_weather","arguments":{"city":"New York"},"task":{"ttl":60000}}}"#,
    );
    let Operation::CallTool(call) = request.operation else { panic!() };
    assert_eq!((&*call.name, call.arguments.get()), ("get_weather", r#"{"city":"New York"}"#));
    assert_eq!(call.task, Some(TaskRequest { ttl: Ttl::Ms(60_000), ..TaskRequest::default() }));

    let task = at_ten_forty(running(), Some("The operation is now in progress."));
    let task_shown = shown("working", json!({ "statusMessage": "The operation is now in progress.", "ttl": 60000 }));
    let example = response(1, json!({ "task": task_shown }));
    assert_same(&TASKS.created(&to(&request.id, LATEST), &seen(&task), None), &example);

    let tool = ToolDeclaration::draft("get_weather").immediate_response("I have begun.").declare().unwrap();
    let message = value(&TASKS.created(&to(&request.id, LATEST), &seen(&task), tool.immediate_response()));
    assert_eq!(
        message["result"]["_meta"],
        json!({ "io.modelcontextprotocol/model-immediate-response": "I have begun." })
    );
}

#[test]
fn a_poll() {
    let message = format!(r#"{{"jsonrpc":"2.0","id":3,"method":"tasks/get","params":{{"taskId":"{TASK_ID}"}}}}"#);
    let request = asked(&message).id;
    let task = at_ten_forty(running(), Some("The operation is now in progress."));
    let example = response(3, shown("working", json!({ "statusMessage": "The operation is now in progress." })));
    assert_same(&TASKS.task(&to(&request, LATEST), &seen(&task)), &example);
}

#[test]
fn a_result() {
    let message = format!(r#"{{"jsonrpc":"2.0","id":4,"method":"tasks/result","params":{{"taskId":"{TASK_ID}"}}}}"#);
    let request = asked(&message);
    assert!(matches!(&request.operation, Operation::TaskResult(id) if id.as_str() == TASK_ID));
    let text = "Current weather in New York:\nTemperature: 72°F\nConditions: Partly cloudy";
    let mut body = json!({ "content": [{ "type": "text", "text": text }], "isError": false });
    let task = completed(&body.to_string(), false);
    body["_meta"] = json!({ RELATED_TASK: { "taskId": TASK_ID } });
    let example = response(4, body);
    assert_same(&TASKS.result(&to(&request.id, LATEST), &seen(&task)).unwrap(), &example);
    assert_eq!(TASKS.result(&to(&request.id, LATEST), &seen(&running())), None, "it waits");
}

#[test]
fn a_status_notification() {
    let task = shown("completed", json!({ "lastUpdatedAt": "2025-11-25T10:50:00Z", "ttl": 60000 }));
    let example = json!({ "jsonrpc": "2.0", "method": "notifications/tasks/status", "params": task });
    assert_same(&TASKS.changed(None, &seen(&completed(r#"{"content":[]}"#, false))).unwrap(), &example);

    let ClientNotification::TaskStatus(task) = told(&example.to_string()) else { panic!() };
    let expected = RemoteTask {
        id: TASK_ID.into(),
        status: RemoteStatus::Completed,
        message: None,
        ttl_ms: Some(60_000),
        poll_interval_ms: Some(5_000),
    };
    assert_eq!(task, expected);
}

#[test]
fn a_list() {
    let request =
        asked(r#"{"jsonrpc":"2.0","id":5,"method":"tasks/list","params":{"cursor":"optional-cursor-value"}}"#);
    let Operation::ListTasks { cursor } = request.operation else { panic!() };
    assert_eq!(cursor.as_deref(), Some("optional-cursor-value"));

    let first = at_ten_forty(running(), None);
    let mut second = at_ten_forty(completed(r#"{"content":[]}"#, false), None);
    second.key.id = TaskId::parse("abc123-def456-ghi789").unwrap();
    second.created_at = Timestamp::from_ms(CREATED.as_ms() - 75 * 60_000);
    let page = [seen(&first), TaskView { poll_interval_ms: 0, ..seen(&second) }];
    let older = json!({
        "taskId": "abc123-def456-ghi789", "status": "completed", "ttl": 60000,
        "createdAt": "2025-11-25T09:15:00Z", "lastUpdatedAt": "2025-11-25T10:40:00Z",
    });
    let tasks = [shown("working", json!({})), older];
    let example = response(5, json!({ "tasks": tasks, "nextCursor": "next-page-cursor" }));
    assert_same(&TASKS.page(&to(&request.id, LATEST), &page, Some("next-page-cursor")), &example);
}

#[test]
fn a_cancellation() {
    let message = format!(r#"{{"jsonrpc":"2.0","id":6,"method":"tasks/cancel","params":{{"taskId":"{TASK_ID}"}}}}"#);
    let request = asked(&message);
    assert!(matches!(&request.operation, Operation::CancelTask(id) if id.as_str() == TASK_ID));
    let reason = "The task was cancelled by request.";
    let cancel = Event::Cancel(Cancel { reason: Some(reason.into()) });
    let task =
        longhaul_task::transition::apply(&running(), &cancel, &Surroundings::default(), CREATED.plus_ms(600_000));
    let task = at_ten_forty(task.unwrap().task, Some(reason));
    let example = response(6, shown("cancelled", json!({ "statusMessage": reason })));
    assert_same(&TASKS.cancelled(&to(&request.id, LATEST), &seen(&task)), &example);
}

#[test]
fn task_parameters_and_the_related_task_key() {
    let message = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","task":{{"ttl":60000}},"_meta":{{"{RELATED_TASK}":{{"taskId":"{TASK_ID}"}}}}}}}}"#
    );
    let request = asked(&message);
    assert!(matches!(request.operation, Operation::CallTool(call) if call.task.is_some()));
}

#[test]
fn errors() {
    // The document's two rules for this case disagree about the code; the one with MUST in it is kept.
    let tool = ToolDeclaration::draft("render").task_support(TaskSupport::Required).declare().unwrap();
    let message = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"render"}}"#;
    let Operation::CallTool(call) = asked(message).operation else { panic!() };
    let error = TASKS.call_mode(&call, &tool, peer(LATEST)).unwrap_err();
    assert_eq!(error.code, -32601);
    assert!(error.message.starts_with("Task augmentation required for tools/call requests"));

    let example = json!({ "jsonrpc": "2.0", "id": 70, "error": {
        "code": -32602, "message": "Failed to retrieve task: Task not found"
    } });
    assert_eq!(value(&jsonrpc::error(Some(&70.into()), &refusal::no_such_task())), example);

    // A task that has expired is gone: the same answer. Read as an answer from the other side it is what it is.
    let expired =
        r#"{"jsonrpc":"2.0","id":71,"error":{"code":-32602,"message":"Failed to retrieve task: Task has expired"}}"#;
    let Incoming::Response(response) = incoming(expired) else { panic!() };
    assert_eq!(response.outcome.unwrap_err().code, -32602);

    let example = json!({ "jsonrpc": "2.0", "id": 74, "error": {
        "code": -32602, "message": "Cannot cancel task: already in terminal status 'completed'"
    } });
    let task = completed("{}", false);
    assert_eq!(
        value(&jsonrpc::error(
            Some(&74.into()),
            &TASKS.cancelled_too_late(&to(&id(), LATEST), &seen(&task)).unwrap_err()
        )),
        example
    );
}

#[test]
fn a_task_that_failed() {
    let body =
        r#"{"content":[{"type":"text","text":"Tool execution failed: API rate limit exceeded"}],"isError":true}"#;
    let mut task = at_ten_forty(completed(body, true), Some("asking the API"));
    assert!(matches!(&task.phase, Phase::Settled { outcome: Outcome::Result { is_error: true, .. }, .. }));
    task.key.id = TaskId::parse("786512e2-9e0d-44bd-8f29-789f820fe840").unwrap();
    let id = "786512e2-9e0d-44bd-8f29-789f820fe840";
    let message = "Tool execution failed: API rate limit exceeded";
    let mut example = response(4, shown("failed", json!({ "taskId": id, "statusMessage": message })));
    example["result"].as_object_mut().unwrap().remove("pollInterval");
    assert_same(&TASKS.task(&to(&4.into(), LATEST), &TaskView { poll_interval_ms: 0, ..seen(&task) }), &example);
}
