//! The dialect of the lesson: its example and its words, read and written.

use longhaul_task::{Outcome, Progress, QuestionKind, Retention, Task, TaskError, TaskId, Timestamp};
use longhaul_wire::jsonrpc::RequestId;
use longhaul_wire::tool::{TaskSupport, ToolDeclaration};
use longhaul_wire::{
    CallMode, Context, Generation, Operation, Peer, ReplyTo, Revision, RoutedRequest, ServerInfo, TaskView, route,
};
use serde_json::{Value, json};

use crate::common::{
    FORM, cancelled, completed, failed, must_fit, queued, raw, request, running, settled, value, waiting,
};

const LESSON: Generation = Generation::Lesson;

fn routed(message: &str, revision: Revision, last_marker: Option<Generation>) -> RoutedRequest<'_> {
    let peer = Peer::new(revision, longhaul_wire::Capabilities::default());
    route(&request(message), &Context::Session { peer, last_marker, is_restored: false })
        .unwrap_or_else(|error| panic!("{error:?}"))
}

fn reply(write: impl FnOnce(&ReplyTo<'_>) -> String) -> Value {
    let (id, server) = (RequestId::parse(&raw("1")).unwrap(), ServerInfo::hidden());
    value(&write(&ReplyTo { id: &id, revision: Revision::LATEST_SESSION, server: &server }))
}

fn fits(definition: &str, message: &Value) {
    must_fit("lesson", definition, &message.to_string(), "");
}

fn call(task: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "generate_report", "_meta": { "task": task } } })
    .to_string()
}

#[test]
fn the_example_of_a_creation_is_written() {
    let example = json!({ "jsonrpc": "2.0", "id": 1,
        "result": { "_meta": { "task": { "id": "tsk_9f7b...", "state": "working", "ttl": 900_000 } } } });
    fits("CreateTaskResponse", &example);
    let mut task = Task { retention: Retention::FromCreation(900_000), ..queued() };
    task.key.id = TaskId::parse("tsk_9f7b...").unwrap();
    assert_eq!(reply(|to| LESSON.created(to, &TaskView::of(&task), None)), example);
}

#[test]
fn a_call_asks_for_a_task_that_is_required_or_optional() {
    for (task, modes) in [
        (json!({ "required": true }), [CallMode::Ordinary, CallMode::Task, CallMode::Task]),
        (json!({ "optional": true }), [CallMode::Ordinary, CallMode::TaskOrResult, CallMode::TaskOrResult]),
    ] {
        let message = call(&task);
        for revision in Revision::SESSIONS {
            let asked = routed(&message, revision, None);
            assert_eq!((asked.generation, asked.marker), (LESSON, Some(LESSON)), "{task}");
            let Operation::CallTool(call) = asked.operation else { panic!() };
            let supports = [TaskSupport::Forbidden, TaskSupport::Optional, TaskSupport::Required];
            for (support, mode) in supports.into_iter().zip(modes) {
                let tool = ToolDeclaration::draft("generate_report").task_support(support).declare().unwrap();
                assert_eq!(LESSON.call_mode(&call, &tool, asked.peer), Ok(mode), "{task} {support:?}");
            }
        }
    }
    for neither in [json!({}), json!({ "required": false }), json!(true), json!(null), json!("other")] {
        let message = call(&neither);
        let asked = routed(&message, Revision::LATEST_SESSION, None);
        assert_eq!((asked.generation, asked.marker), (Generation::Core2025, None), "{neither}");
    }
}

#[test]
fn a_status_has_the_state_a_progress_hint_and_the_retention() {
    let task = running();
    let progress = Progress { done: 2.0, total: Some(5.0), message: Some("page 2".into()), at: Timestamp::ZERO };
    let view = TaskView { progress: Some(&progress), ..TaskView::of(&task) };
    let shown = reply(|to| LESSON.task(to, &view));
    let id = task.key.id.as_str();
    let expected = json!({ "taskId": id, "state": "working", "progress": 0.4, "message": "page 2", "ttl": 3_600_000 });
    assert_eq!(shown["result"], expected);
    fits("StatusResult", &shown["result"]);
    let told = value(&LESSON.changed(None, &view).unwrap());
    fits("UpdatedNotification", &told);
    assert_eq!(told["params"], json!({ "taskId": id, "state": "working", "progress": 0.4 }));
}

#[test]
fn a_completed_task_is_wholly_done() {
    let progress = Progress { done: 2.0, total: Some(5.0), message: None, at: Timestamp::ZERO };
    for (is_error, hint) in [(false, 1.0), (true, 0.4)] {
        let task = completed(r#"{"content":[]}"#, is_error);
        let view = TaskView { progress: Some(&progress), ..TaskView::of(&task) };
        assert_eq!(reply(|to| LESSON.task(to, &view))["result"]["progress"], hint);
    }
}

#[test]
fn every_state_has_its_word() {
    let crashed = settled(Outcome::Error(TaskError::with_code("CRASH_RECOVERY", "The server was stopped.".to_owned())));
    for (task, state, error) in [
        (queued(), "working", None),
        (running(), "working", None),
        (waiting(QuestionKind::Elicitation, FORM), "input_required", None),
        (waiting(QuestionKind::Sampling, "{}"), "working", None),
        (completed(r#"{"content":[]}"#, false), "completed", None),
        (completed(r#"{"content":[],"isError":true}"#, true), "failed", None),
        (
            completed(r#"{"content":[{"type":"text","text":"no luck"}],"isError":true}"#, true),
            "failed",
            Some("no luck"),
        ),
        (failed(), "failed", Some("API rate limit exceeded")),
        (crashed, "failed", Some("CRASH_RECOVERY")),
        (cancelled(), "cancelled", None),
    ] {
        let shown = reply(|to| LESSON.task(to, &TaskView::of(&task)));
        fits("StatusResult", &shown["result"]);
        assert_eq!((&shown["result"]["state"], shown["result"]["error"].as_str()), (&json!(state), error), "{shown}");
        let is_terminal = !matches!(state, "working" | "input_required");
        assert_eq!(LESSON.result(&to(), &TaskView::of(&task)).is_some(), is_terminal, "{state}: it blocks");
        // Cancelling twice, or too late, changes nothing and is no error.
        let late = reply(|to| LESSON.cancelled_too_late(to, &TaskView::of(&task)).unwrap());
        assert_eq!(late, shown);
    }
}

fn to() -> ReplyTo<'static> {
    static ID: std::sync::LazyLock<RequestId> = std::sync::LazyLock::new(|| RequestId::parse(&raw("1")).unwrap());
    static SERVER: std::sync::LazyLock<ServerInfo> = std::sync::LazyLock::new(ServerInfo::hidden);
    ReplyTo { id: &ID, revision: Revision::LATEST_SESSION, server: &SERVER }
}

#[test]
fn a_page_shows_what_a_status_shows() {
    let task = running();
    let page = reply(|to| LESSON.page(to, &[TaskView::of(&task), TaskView::of(&task)], Some("next")));
    fits("ListTasksResult", &page["result"]);
    let shown = reply(|to| LESSON.task(to, &TaskView::of(&task)));
    assert_eq!(page["result"]["tasks"], json!([shown["result"], shown["result"]]));
}
