//! SEP-1686 as accepted: every JSON example of the document, read and, where the receiver sends it, written.

use longhaul_task::{QuestionKind, Retention, Task};
use longhaul_wire::jsonrpc::{RequestId, RpcError};
use longhaul_wire::tool::{TaskSupport, ToolDeclaration};
use longhaul_wire::{
    CallMode, Context, Generation, Operation, Peer, RelatedTask, ReplyTo, Revision, RoutedRequest, ServerInfo,
    TaskView, Ttl, jsonrpc, refusal, route,
};
use serde_json::{Value, json};

use crate::common::{
    FORM, cancelled, completed, failed, family, must_fit, queued, raw, request, running, value, waiting,
};

const SEP: Generation = Generation::Sep1686;
const ID: &str = "786512e2-9e0d-44bd-8f29-789f320fe840";

fn related(id: &str) -> Value {
    json!({ "modelcontextprotocol.io/related-task": { "taskId": id } })
}

fn routed(message: &str, revision: Revision, last_marker: Option<Generation>) -> RoutedRequest<'_> {
    let peer = Peer::new(revision, longhaul_wire::Capabilities::default());
    route(&request(message), &Context::Session { peer, last_marker, is_restored: false })
        .unwrap_or_else(|error| panic!("{error:?}"))
}

fn reply(id: &str, write: impl FnOnce(&ReplyTo<'_>) -> String) -> Value {
    let (id, server) = (RequestId::parse(&raw(id)).unwrap(), ServerInfo::hidden());
    value(&write(&ReplyTo { id: &id, revision: Revision::V2025_06_18, server: &server }))
}

/// The task of the examples, kept for this long after its end.
fn kept(task: Task, ms: u64) -> Task {
    Task { retention: Retention::FromEnd(ms), ..task }
}

fn view(task: &Task, poll_interval_ms: u64) -> TaskView<'_> {
    TaskView { poll_interval_ms, ..TaskView::of(task) }
}

fn error(error: &RpcError, id: &str) -> Value {
    value(&jsonrpc::error(Some(&RequestId::parse(&raw(id)).unwrap()), error))
}

fn fits(definition: &str, message: &Value) {
    must_fit("sep1686", definition, &message.to_string(), "");
}

#[test]
fn the_example_of_a_creating_request_asks_for_its_task() {
    let example = json!({
        "jsonrpc": "2.0", "id": 1, "method": "some_method",
        "params": { "_meta": { "modelcontextprotocol.io/task": { "taskId": ID, "keepAlive": 60_000 } } }
    });
    fits("CreatingRequest", &example);
    let meta = example["params"]["_meta"].to_string();
    let asks = SEP.task_request(None, Some(&serde_json::from_str(&meta).unwrap())).unwrap().expect("a task");
    assert_eq!((asks.id.unwrap().as_str(), asks.ttl), (ID, Ttl::MsAfterEnd(60_000)));
    // The data type "Task Metadata" is the same object.
    fits("TaskMetadata", &example["params"]["_meta"]["modelcontextprotocol.io/task"]);

    // The same with a method that this receiver has, at every revision of sessions.
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "t", "_meta": example["params"]["_meta"] } })
    .to_string();
    for revision in Revision::SESSIONS {
        let asked = routed(&call, revision, None);
        assert_eq!((asked.generation, asked.marker), (SEP, Some(SEP)), "{revision:?}");
        let Operation::CallTool(call) = asked.operation else { panic!() };
        for (support, mode) in [
            (TaskSupport::Forbidden, CallMode::Ordinary),
            (TaskSupport::Optional, CallMode::TaskThenResult),
            (TaskSupport::Required, CallMode::TaskThenResult),
        ] {
            let tool = ToolDeclaration::draft("t").task_support(support).declare().unwrap();
            assert_eq!(SEP.call_mode(&call, &tool, asked.peer), Ok(mode), "{support:?}");
        }
    }
}

#[test]
fn a_malformed_request_for_a_task_is_an_invalid_parameter() {
    for task in [
        json!(5),
        json!({}),
        json!({ "taskId": 5 }),
        json!({ "taskId": "" }),
        json!({ "taskId": "a\nb" }),
        json!({ "taskId": "x".repeat(257) }),
        json!({ "taskId": "0a\u{f8ff}x" }),
        json!({ "taskId": "t", "keepAlive": "long" }),
        json!({ "taskId": "t", "keepAlive": -1 }),
    ] {
        let meta = json!({ "modelcontextprotocol.io/task": task }).to_string();
        let asked = SEP.task_request(None, Some(&serde_json::from_str(&meta).unwrap())).unwrap().unwrap();
        let refused = SEP.task_mode(&asked).unwrap_err();
        assert_eq!(refused.code, -32_602, "{task}: {refused:?}");
    }
}

#[test]
fn the_examples_of_tasks_get_are_read_and_written() {
    let asks =
        json!({ "jsonrpc": "2.0", "id": 3, "method": "tasks/get", "params": { "taskId": ID, "_meta": related(ID) } });
    fits("GetTaskRequest", &asks);
    for revision in Revision::SESSIONS {
        let text = asks.to_string();
        let asked = routed(&text, revision, None);
        assert_eq!((asked.generation, asked.follows_task), (SEP, false));
        assert!(matches!(asked.operation, Operation::GetTask(id) if id.as_str() == ID));
    }
    let answer = json!({ "jsonrpc": "2.0", "id": 3, "result": {
        "taskId": ID, "keepAlive": 30_000, "pollFrequency": 5_000, "status": "submitted", "_meta": related(ID)
    } });
    fits("GetTaskResult", &answer["result"]);
    let task = kept(queued(), 30_000);
    assert_eq!(reply("3", |to| SEP.task(to, &view(&task, 5_000))), answer);
}

#[test]
fn the_examples_of_tasks_result_are_read_and_written() {
    let asks = json!({ "jsonrpc": "2.0", "id": 4, "method": "tasks/result", "params": { "taskId": ID, "_meta": related(ID) } });
    fits("TaskResultRequest", &asks);
    let text = asks.to_string();
    let asked = routed(&text, Revision::LATEST_SESSION, None);
    assert!(asked.generation == SEP && matches!(asked.operation, Operation::TaskResult(id) if id.as_str() == ID));
    let content = json!([{ "type": "text",
        "text": "Current weather in New York:\nTemperature: 72°F\nConditions: Partly cloudy" }]);
    let answer = json!({ "jsonrpc": "2.0", "id": 4,
        "result": { "content": content, "isError": false, "_meta": related(ID) } });
    fits("TaskResult", &answer["result"]);
    let task = completed(&json!({ "content": content, "isError": false }).to_string(), false);
    assert_eq!(reply("4", |to| SEP.result(to, &TaskView::of(&task)).unwrap()), answer);
    // The call itself gets the same answer.
    assert_eq!(reply("4", |to| SEP.answer(to, &TaskView::of(&task)).unwrap().unwrap()), answer);
}

#[test]
fn the_example_of_the_creation_notification_is_written() {
    let example =
        json!({ "jsonrpc": "2.0", "method": "notifications/tasks/created", "params": { "_meta": related(ID) } });
    fits("TaskCreatedNotification", &example);
    assert_eq!(value(&SEP.announcement(RelatedTask::to(SEP, &queued())).unwrap()), example);
    // The data type "Related Task Metadata" is the same object.
    fits("RelatedMeta", &example["params"]["_meta"]);
    let (parent, child) = family();
    let announced = value(&SEP.announcement(RelatedTask::to(SEP, &child)).unwrap());
    fits("TaskCreatedNotification", &announced);
    let named = &announced["params"]["_meta"]["modelcontextprotocol.io/related-task"];
    assert_eq!(*named, json!({ "taskId": "child", "parentTaskId": parent.key.id.as_str() }));
}

#[test]
fn the_examples_of_tasks_list_are_read_and_written() {
    let asks =
        json!({ "jsonrpc": "2.0", "id": 5, "method": "tasks/list", "params": { "cursor": "optional-cursor-value" } });
    fits("ListTasksRequest", &asks);
    let text = asks.to_string();
    let asked = routed(&text, Revision::V2025_06_18, None);
    assert!(
        matches!(&asked.operation, Operation::ListTasks { cursor } if cursor.as_deref() == Some("optional-cursor-value"))
    );
    assert_eq!(asked.generation, SEP, "the only one that lists below 2025-11-25");
    let answer = json!({ "jsonrpc": "2.0", "id": 5, "result": {
        "tasks": [
            { "taskId": ID, "status": "working", "keepAlive": 30_000, "pollFrequency": 5_000 },
            { "taskId": "abc123-def456-ghi789", "status": "completed", "keepAlive": 60_000 }
        ],
        "nextCursor": "next-page-cursor"
    } });
    fits("ListTasksResult", &answer["result"]);
    let first = kept(running(), 30_000);
    let mut second = kept(completed(r#"{"content":[]}"#, false), 60_000);
    second.key.id = longhaul_task::TaskId::parse("abc123-def456-ghi789").unwrap();
    let views = [view(&first, 5_000), view(&second, 5_000)];
    assert_eq!(reply("5", |to| SEP.page(to, &views, Some("next-page-cursor"))), answer);
}

#[test]
fn the_examples_of_tasks_delete_are_read_and_written() {
    let asks = json!({ "jsonrpc": "2.0", "id": 6, "method": "tasks/delete", "params": { "taskId": ID, "_meta": related(ID) } });
    fits("DeleteTaskRequest", &asks);
    let text = asks.to_string();
    let asked = routed(&text, Revision::LATEST_SESSION, None);
    assert!(asked.generation == SEP && matches!(asked.operation, Operation::DeleteTask(id) if id.as_str() == ID));
    let answer = json!({ "jsonrpc": "2.0", "id": 6, "result": { "_meta": related(ID) } });
    fits("DeleteTaskResult", &answer["result"]);
    assert_eq!(reply("6", |to| SEP.deleted(to, RelatedTask::to(SEP, &completed("{}", false)))), answer);
}

#[test]
fn the_examples_of_errors_are_written() {
    let example = |id: i64, message: &str| {
        let example = json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32_602, "message": message } });
        fits("ErrorResponse", &example);
        example
    };
    assert_eq!(error(&refusal::no_such_task(), "70"), example(70, "Failed to retrieve task: Task not found"));
    // A receiver may say "not found" of an expired task. This one does, so that the answer does not tell that there was one.
    example(71, "Failed to retrieve task: Task has expired");
    let not_completed = example(72, "Cannot retrieve result: Task status is 'working', not 'completed'");
    assert_eq!(reply("72", |to| SEP.result(to, &TaskView::of(&running())).unwrap()), not_completed);
    assert_eq!(error(&refusal::task_id_exists(ID), "73"), example(73, &format!("Task ID already exists: {ID}")));
}

#[test]
fn the_example_of_a_failed_task_is_written_with_its_related_task() {
    let example = json!({ "jsonrpc": "2.0", "id": 4, "result": {
        "taskId": ID, "status": "failed", "keepAlive": 30_000, "error": "Tool execution failed: API rate limit exceeded"
    } });
    fits("Task", &example["result"]);
    let task = kept(failed(), 30_000);
    let mut written = reply("4", |to| SEP.task(to, &view(&task, 5_000)));
    fits("GetTaskResult", &written["result"]);
    // The example leaves out the key that section 4.7 requires.
    assert_eq!(written["result"].as_object_mut().unwrap().remove("_meta"), Some(related(ID)));
    written["result"]["error"] = example["result"]["error"].clone();
    assert_eq!(written, example);
}

#[test]
fn every_status_is_shown_by_its_word_and_only_a_completed_task_has_a_result() {
    let is_error = completed(r#"{"content":[],"isError":true}"#, true);
    for (task, status) in [
        (queued(), "submitted"),
        (running(), "working"),
        (waiting(QuestionKind::Elicitation, FORM), "input_required"),
        (waiting(QuestionKind::Sampling, "{}"), "input_required"),
        (completed(r#"{"content":[]}"#, false), "completed"),
        (is_error, "completed"),
        (failed(), "failed"),
        (cancelled(), "cancelled"),
    ] {
        let shown = reply("1", |to| SEP.task(to, &TaskView::of(&task)));
        fits("GetTaskResult", &shown["result"]);
        assert_eq!(shown["result"]["status"], status);
        let result = reply("1", |to| SEP.result(to, &TaskView::of(&task)).unwrap());
        assert_eq!(result["error"]["code"] == -32_602, status != "completed", "{result}");
        assert_eq!(SEP.changed(None, &TaskView::of(&task)), None, "a requestor polls");
    }
}

#[test]
fn a_task_that_waits_for_another_attempt_is_working() {
    let mut again = queued();
    again.attempt = 1;
    assert_eq!(reply("1", |to| SEP.task(to, &TaskView::of(&again)))["result"]["status"], "working");
}

#[test]
fn keep_alive_is_counted_from_the_end_and_never_shrinks() {
    let shown = |task: &Task| reply("1", |to| SEP.task(to, &TaskView::of(task)))["result"]["keepAlive"].clone();
    assert_eq!(shown(&kept(running(), 60_000)), 60_000);
    assert_eq!(shown(&Task { retention: Retention::Unlimited, ..running() }), Value::Null);
    // An hour from its creation, and it ended after 20 minutes.
    assert_eq!(shown(&running()), 600_000, "the least that is certain");
    assert_eq!(shown(&completed("{}", false)), 2_400_000);
}
