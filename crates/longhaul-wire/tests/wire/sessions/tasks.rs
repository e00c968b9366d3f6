//! How sessions show a task, its result and its cancellation.

use std::sync::Arc;

use longhaul_task::{MESSAGE_BYTES_MAX, Progress, QuestionKind, Retention, Task};
use longhaul_wire::{RelatedTask, TaskView, call_result, progress};
use serde_json::{Value, json};

use super::{LATEST, RELATED_TASK, TASKS, id, to};
use crate::common::*;

const TOOL_ERROR: &str = r#"{"content":[{"type":"text","text":"No such city."},{"type":"image","data":"","mimeType":"image/png"},{"type":"text","text":"Try another."}],"isError":true}"#;

/// The result of `tasks/get`.
fn shown(task: &Task) -> Value {
    value(&TASKS.task(&to(&id(), LATEST), &TaskView::of(task)))["result"].clone()
}

/// The response to `tasks/result`.
fn result(task: &Task) -> Value {
    value(&TASKS.result(&to(&id(), LATEST), &TaskView::of(task)).unwrap())
}

#[test]
fn every_phase_has_its_status() {
    let table = [
        (queued(), "working"),
        (running(), "working"),
        (waiting(QuestionKind::Elicitation, FORM), "input_required"),
        (waiting(QuestionKind::Sampling, "{}"), "input_required"),
        (completed("{}", false), "completed"),
        (completed(TOOL_ERROR, true), "failed"),
        (failed(), "failed"),
        (cancelled(), "cancelled"),
    ];
    for (task, status) in &table {
        let shown = shown(task);
        assert_eq!(shown["status"], *status);
        assert!(
            ["result", "error", "inputRequests", "_meta", "resultType"].iter().all(|name| shown.get(name).is_none())
        );
        let view = TaskView::of(task);
        assert_eq!(value(&TASKS.changed(None, &view).unwrap())["params"], shown, "a push shows what a poll shows");
        assert_eq!(value(&TASKS.page(&to(&id(), LATEST), &[view], None))["result"], json!({ "tasks": [shown] }));
    }
}

#[test]
fn the_creation_shows_working_even_if_the_task_has_ended() {
    for task in [queued(), running(), completed(TOOL_ERROR, true), failed(), cancelled()] {
        let task = &value(&TASKS.created(&to(&id(), LATEST), &TaskView::of(&task), None))["result"]["task"];
        assert_eq!(task["status"], "working");
        assert!(task.get("statusMessage").is_none(), "the outcome is not shown yet");
    }
}

#[test]
fn the_answer_to_a_repeated_creation_shows_what_a_poll_shows() {
    for task in [queued(), running(), completed(TOOL_ERROR, true), failed(), cancelled()] {
        let view = TaskView::of(&task);
        let shown = value(&TASKS.task(&to(&id(), LATEST), &view))["result"].clone();
        assert_eq!(value(&TASKS.created_earlier(&to(&id(), LATEST), &view))["result"]["task"], shown);
    }
}

#[test]
fn the_status_message_of_a_failed_task_is_its_tools_error_text() {
    let mut task = completed(TOOL_ERROR, true);
    task.message = Some("asking".into());
    assert_eq!(shown(&task)["statusMessage"], "No such city.\nTry another.");

    let long =
        format!(r#"{{"content":[{{"type":"text","text":"{}"}}],"isError":true}}"#, "ä".repeat(MESSAGE_BYTES_MAX));
    let task = shown(&completed(&long, true));
    let message = task["statusMessage"].as_str().unwrap();
    assert!(message.len() <= MESSAGE_BYTES_MAX && message.ends_with('…'));

    for without_text in [r#"{"content":[],"isError":true}"#, r#"{"isError":true}"#, "5"] {
        let mut task = completed(without_text, true);
        task.message = Some("asking".into());
        assert_eq!(
            shown(&task)["statusMessage"],
            "asking",
            "the last status message of the task, because the tool returned no text"
        );
    }
    assert_eq!(shown(&failed())["statusMessage"], "API rate limit exceeded");
}

#[test]
fn the_ttl_is_null_for_unlimited_retention() {
    let mut task = queued();
    task.retention = Retention::Unlimited;
    assert_eq!(shown(&task).as_object().unwrap()["ttl"], Value::Null);
    task.retention = Retention::FromCreation(60_000);
    assert_eq!(shown(&task)["ttl"], 60_000);
}

#[test]
fn a_result_is_what_the_call_would_have_returned() {
    let body = r#"{"content":[{"type":"text","text":"Hello"}], "isError" : false}"#;
    let task = completed(body, false);
    let mut expected = value(body);
    assert_eq!(value(&call_result::complete(&to(&id(), LATEST), &json(body)))["result"], expected);
    expected["_meta"] = json!({ RELATED_TASK: { "taskId": task.key.id.as_str() } });
    assert_eq!(result(&task)["result"], expected);

    assert_eq!(result(&completed(TOOL_ERROR, true))["result"]["isError"], true, "a tool error is a result");
    let error = &result(&failed())["error"];
    assert_eq!(*error, json!({ "code": -32603, "message": "API rate limit exceeded", "data": { "retry": true } }));
    let error = &result(&cancelled())["error"];
    assert_eq!((&error["code"], &error["data"]["code"]), (&json!(-32603), &json!("CANCELLED")));
    assert!(!error["message"].as_str().unwrap().is_empty());
}

#[test]
fn a_task_has_no_result_before_it_has_ended() {
    for task in [queued(), running(), waiting(QuestionKind::Elicitation, FORM)] {
        assert_eq!(TASKS.result(&to(&id(), LATEST), &TaskView::of(&task)), None);
    }
}

#[test]
fn a_task_that_has_ended_cannot_be_cancelled() {
    for (task, status) in [
        (completed("{}", false), "completed"),
        (completed(TOOL_ERROR, true), "failed"),
        (failed(), "failed"),
        (cancelled(), "cancelled"),
    ] {
        let error = TASKS.cancelled_too_late(&to(&id(), LATEST), &TaskView::of(&task)).unwrap_err();
        assert_eq!(error.code, -32602);
        assert_eq!(error.message, format!("Cannot cancel task: already in terminal status '{status}'"));
    }
}

#[test]
fn a_parent_names_its_children_and_a_child_its_parent() {
    let (parent, child) = family();
    assert_eq!(shown(&child)["parentTaskId"], parent.key.id.as_str());
    let children = [child.key.id.clone()];
    let response = value(&TASKS.task(&to(&id(), LATEST), &TaskView { children: &children, ..TaskView::of(&parent) }));
    assert_eq!(response["result"]["childTaskIds"], json!(["child"]));
    let report = Progress { done: 1.0, total: None, message: None, at: CREATED };
    let message = value(&progress::notification(&id(), &report, Some(RelatedTask::to(TASKS, &child))));
    let expected = json!({ RELATED_TASK: { "taskId": "child", "parentTaskId": parent.key.id.as_str() } });
    assert_eq!(message["params"]["_meta"], expected);
}

#[test]
fn progress_is_sent_only_if_it_grows_and_is_a_number_of_json() {
    let may_follow = |last, done| progress::grows(last, &Progress { done, total: None, message: None, at: CREATED });
    assert!(may_follow(None, 0.0) && may_follow(Some(1.0), 1.5));
    assert!(!may_follow(Some(1.0), 1.0) && !may_follow(Some(2.0), 1.0));
    assert!(!may_follow(None, f64::NAN) && !may_follow(Some(5.0), f64::INFINITY), "it would be written as 0");
}

#[test]
fn progress_has_the_token_of_the_call() {
    let report = Progress { done: 0.5, total: Some(1.0), message: Some(Arc::from("half")), at: CREATED };
    let ordinary = value(&progress::notification(&id(), &report, None));
    assert_eq!(ordinary["params"], json!({ "progressToken": "a-1", "progress": 0.5, "total": 1, "message": "half" }));
    let of_task = value(&progress::notification(&id(), &report, Some(RelatedTask::to(TASKS, &running()))));
    assert_eq!(of_task["params"]["_meta"][RELATED_TASK]["taskId"], running().key.id.as_str());
}
