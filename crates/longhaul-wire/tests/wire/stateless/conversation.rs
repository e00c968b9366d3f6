//! The shapes of the specification's own examples, read and written.

use std::sync::Arc;

use longhaul_task::{AHEAD_MS_MIN, Phase, Progress, QuestionKey, QuestionKind, Retention, Task};
use longhaul_wire::call_result::{self, InputRequest};
use longhaul_wire::jsonrpc::{self, RequestId, RpcError};
use longhaul_wire::{CallTool, Capability, Operation, ServerInfo, TaskView, UpdateTask, question, refusal};
use serde_json::Value;

use super::{TASKS, accepted, refused, routed, to};
use crate::common::*;

fn call(message: &str) -> CallTool<'_> {
    match accepted(message).operation {
        Operation::CallTool(call) => call,
        other => panic!("no call: {other:?}"),
    }
}

fn updating(message: &str) -> Result<UpdateTask<'_>, RpcError> {
    match routed(message)?.operation {
        Operation::UpdateTask(update) => Ok(update),
        other => panic!("no update: {other:?}"),
    }
}

fn id() -> RequestId {
    3.into()
}

fn polled(view: &TaskView<'_>) -> String {
    TASKS.task(&to(&id(), &ServerInfo::hidden()), view)
}

/// What a poll shows of a task.
fn shown(task: &Task) -> Value {
    value(&polled(&TaskView::of(task)))["result"].take()
}

#[test]
fn a_call_is_read_with_its_arguments_untouched() {
    let message = modern(
        "tools/call",
        r#""name":"get_weather","arguments":{ "city": "New York", "n": 1.0 },"task":{"ttl":60000}"#,
        WITH_TASKS,
    );
    let request = accepted(&message);
    assert_eq!(request.operation.method(), "tools/call");
    assert!(request.peer.capabilities.has(Capability::Tasks));
    let call = call(&message);
    assert_eq!(call.name, "get_weather");
    assert_eq!(call.arguments.get(), r#"{ "city": "New York", "n": 1.0 }"#);
    assert!(call.input_responses.is_none() && call.request_state.is_none());
    assert!(call.task.is_none(), "the marker of an older generation is ignored");
}

#[test]
fn a_call_without_arguments_has_none() {
    let message = modern("tools/call", r#""name":"hello_world""#, "{}");
    assert_eq!(call(&message).arguments.get(), "{}");
}

#[test]
fn a_second_round_brings_answers_and_the_state_it_was_given() {
    let message = modern(
        "tools/call",
        r#""name":"x","inputResponses":{"login":{"action":"accept","content":{"name":"octocat"}},"odd":7},"requestState":"a\"b""#,
        "{}",
    );
    let call = call(&message);
    assert_eq!(call.request_state.unwrap(), "a\"b");
    let responses = call.input_responses.unwrap();
    assert_eq!(responses.get("odd").unwrap().get(), "7");
    assert_eq!(responses.iter().count(), 2);
    assert!(responses.get("unknown").is_none());
}

#[test]
fn a_call_that_is_none_is_refused() {
    for params in [
        "",
        r#""name":5"#,
        r#""name":null"#,
        r#""name":"x","arguments":[]"#,
        r#""name":"x","arguments":null"#,
        r#""name":"x","inputResponses":null"#,
        r#""name":"x","inputResponses":[]"#,
        r#""name":"x","requestState":{}"#,
    ] {
        let message = modern("tools/call", params, "{}");
        let error = refused(&message);
        assert_eq!((error.code, error.http_status()), (-32602, 200), "{params}");
    }
}

#[test]
fn a_created_task_is_shown_flat() {
    let task = running();
    let view = TaskView { poll_interval_ms: 5_000, ..TaskView::of(&task) };
    assert_eq!(
        TASKS.created(&to(&2.into(), &ServerInfo::hidden()), &view, None),
        concat!(
            r#"{"jsonrpc":"2.0","id":2,"result":{"resultType":"task","taskId":"786512e2-9e0d-44bd-8f29-789f320fe840","#,
            r#""status":"working","createdAt":"2025-11-25T10:30:00.000Z","lastUpdatedAt":"2025-11-25T10:50:00.000Z","#,
            r#""ttlMs":3600000,"pollIntervalMs":5000}}"#,
        )
    );
}

#[test]
fn a_waiting_task_shows_its_questions() {
    let task = waiting(QuestionKind::Elicitation, FORM);
    let result = shown(&task);
    assert_eq!(result["resultType"], "complete");
    assert_eq!(result["status"], "input_required");
    let asked = format!(r#"{{"name-1":{{"method":"elicitation/create","params":{FORM}}}}}"#);
    assert_eq!(result["inputRequests"], value(&asked));
}

#[test]
fn a_completed_task_shows_its_result_as_it_was_stored_and_complete() {
    let body = r#"{"content":[{"type":"text","text":"Hello, Luca!"}],"isError":false, "structuredContent":1.50}"#;
    let task = completed(body, false);
    let message = polled(&TaskView::of(&task));
    assert!(message.contains(r#""status":"completed","createdAt""#));
    let inlined = format!(r#""result":{{"resultType":"complete",{}"#, &body[1..]);
    assert!(message.contains(&inlined), "{message}");
}

#[test]
fn a_tool_error_completes_and_a_protocol_error_fails() {
    let body = r#"{"content":[],"isError":true}"#;
    let result = shown(&completed(body, true));
    assert_eq!((&result["status"], &result["result"]["isError"]), (&"completed".into(), &true.into()));

    let result = shown(&failed());
    assert_eq!(result["status"], "failed");
    assert_eq!(result["statusMessage"], "API rate limit exceeded");
    assert_eq!(result["error"], value(r#"{"code":-32603,"message":"API rate limit exceeded","data":{"retry":true}}"#));
    assert!(result.get("result").is_none());
}

#[test]
fn a_cancelled_task_shows_nothing_more() {
    let result = shown(&cancelled());
    assert_eq!(result["status"], "cancelled");
    assert!(["result", "error", "inputRequests"].iter().all(|name| result.get(name).is_none()));
}

#[test]
fn a_retention_is_positive_or_null_and_never_absent() {
    let mut task = queued();
    task.retention = Retention::Unlimited;
    assert!(shown(&task).as_object().unwrap()["ttlMs"].is_null());
    task.retention = Retention::FromCreation(0);
    assert_eq!(shown(&task)["ttlMs"], AHEAD_MS_MIN, "a retention is positive or null");
    task.retention = Retention::FromEnd(u64::MAX);
    assert_eq!(shown(&task)["ttlMs"], (1_u64 << 53) - 1, "no reader loses a digit");
}

#[test]
fn progress_speaks_for_a_task_that_works_and_never_for_one_that_has_ended() {
    let said = |at| Progress { done: 1.0, total: None, message: Some(Arc::from("page 9")), at };
    let shown_with = |task: &Task, progress: &Progress| {
        let view = TaskView { progress: Some(progress), ..TaskView::of(task) };
        let result = value(&polled(&view))["result"].clone();
        (result["statusMessage"].as_str().map(str::to_owned), result["lastUpdatedAt"].clone())
    };
    let newer = said(CREATED.plus_ms(1_260_000));
    let older = said(CREATED.plus_ms(1));
    let mut task = running();
    assert_eq!(shown_with(&task, &newer), (Some("page 9".into()), "2025-11-25T10:51:00.000Z".into()));
    assert_eq!(shown_with(&task, &older), (Some("page 9".into()), "2025-11-25T10:50:00.000Z".into()));
    task.message = Some("rendering".into());
    // A change of the task after the progress says nothing: a handler that reports a message changes its progress, too.
    assert_eq!(shown_with(&task, &newer).0.unwrap(), "page 9");
    assert_eq!(shown_with(&task, &older).0.unwrap(), "page 9");
    assert_eq!(shown_with(&task, &Progress { message: None, ..older }).0.unwrap(), "rendering");
    assert_eq!(shown_with(&completed("{}", false), &newer), (None, "2025-11-25T10:50:00.000Z".into()));
}

#[test]
fn relatives_are_shown_on_both_sides() {
    let (parent, child) = family();
    assert_eq!(shown(&child)["parentTaskId"], parent.key.id.as_str());
    let children = [child.key.id.clone()];
    let view = TaskView { children: &children, ..TaskView::of(&parent) };
    let result = value(&polled(&view))["result"].clone();
    assert_eq!(result["childTaskIds"], value(r#"["child"]"#));
}

#[test]
fn an_update_is_acknowledged_and_says_nothing_else() {
    let message = modern(
        "tasks/update",
        r#""taskId":"t","inputResponses":{"name-1":{"action":"accept","content":{"name":"Luca"}}}"#,
        WITH_TASKS,
    );
    let updating = updating(&message).unwrap();
    assert_eq!(updating.task_id.as_str(), "t");
    let task = waiting(QuestionKind::Elicitation, FORM);
    let Phase::Waiting { questions, .. } = &task.phase else { panic!() };
    let (key, answer) = updating.input_responses.iter().next().unwrap();
    question::check(questions.find(&QuestionKey::from_text(key)).unwrap(), answer).unwrap();
    assert_eq!(
        TASKS.updated(&to(&6.into(), &ServerInfo::hidden())),
        r#"{"jsonrpc":"2.0","id":6,"result":{"resultType":"complete"}}"#
    );
}

#[test]
fn an_answer_that_does_not_fit_is_found_and_named() {
    let task = waiting(QuestionKind::Elicitation, FORM);
    let question = task.phase.questions().unwrap().iter().next().unwrap();
    let wrong = question::check(question, &raw(r#"{"action":"accept","content":{}}"#)).unwrap_err();
    assert!(wrong.to_string().contains("name-1") && wrong.why().contains("required"), "{wrong}");
}

#[test]
fn a_missing_or_invalid_task_id_is_refused_before_the_store_is_read() {
    let error = |params| refused(&modern("tasks/get", params, WITH_TASKS));
    assert_eq!(error("").code, -32602);
    assert_eq!(error(r#""taskId":7"#).code, -32602);
    assert_eq!(error(r#""taskId":null"#).code, -32602);
    assert_eq!(error(r#""taskId":"a\nb""#), refusal::no_such_task(), "an invalid ID names no task");
    let message = modern("tasks/cancel", r#""taskId":"t""#, WITH_TASKS);
    assert!(matches!(accepted(&message).operation, Operation::CancelTask(id) if id.as_str() == "t"));
}

#[test]
fn an_update_without_answers_is_refused_and_with_none_is_not() {
    let parse = |params: &str| {
        let message = modern("tasks/update", params, WITH_TASKS);
        updating(&message).map(|update| update.input_responses.iter().count())
    };
    assert_eq!(parse(r#""taskId":"t""#).unwrap_err().code, -32602);
    assert_eq!(parse(r#""taskId":"t","inputResponses":[]"#).unwrap_err().code, -32602);
    assert_eq!(parse(r#""taskId":"t","inputResponses":{}"#).unwrap(), 0);
    let many: Vec<String> = (0..=1_024).map(|number| format!("\"{number}\":{{}}")).collect();
    let params = format!(r#""taskId":"t","inputResponses":{{{}}}"#, many.join(","));
    assert_eq!(parse(&params).unwrap_err().code, -32602);
}

#[test]
fn a_call_may_ask_before_it_goes_on() {
    let requests = [InputRequest { key: "login".into(), kind: QuestionKind::Elicitation, params: json(FORM) }];
    let message = call_result::input_required(&to(&1.into(), &ServerInfo::hidden()), &requests, Some("sealed"));
    assert_eq!(
        message,
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"result":{{"resultType":"input_required","inputRequests":{{"login":{{"method":"elicitation/create","params":{FORM}}}}},"requestState":"sealed"}}}}"#
        )
    );
}

#[test]
fn a_message_with_pretty_printed_payload_is_still_one_line() {
    let task = completed("{\n  \"content\": [\r\n]\n}", false);
    let message = polled(&TaskView::of(&task));
    let event = longhaul_wire::sse::event(&message);
    assert_eq!(event.matches('\n').count(), 2);
    assert!(!event.contains('\r'));
    assert_eq!(value(&jsonrpc::one_line(&message)), value(&message));
}
