//! What comes in: requests, notices and answers, told apart and read.

use longhaul_wire::tool::{TaskSupport, ToolDeclaration};
use longhaul_wire::{
    ClientNotification, LogLevel, LogMessage, Operation, Revision, TaskRequest, Ttl, acknowledge, logging,
};

use super::{
    EVERY, Incoming, LATEST, RELATED_TASK, TASKS, asked, incoming, operation, peer, read, requesting, to, told,
};
use crate::common::*;

#[test]
fn every_request_is_known_by_its_method() {
    let table = [
        ("ping", "{}"),
        ("tools/list", "{}"),
        ("tools/list", r#"{"cursor":"c"}"#),
        ("tools/call", r#"{"name":"t"}"#),
        ("prompts/list", r#"{"cursor":null}"#),
        ("prompts/get", r#"{"name":"p","arguments":null}"#),
        ("resources/list", "{}"),
        ("resources/templates/list", "{}"),
        ("resources/read", r#"{"uri":"a:b"}"#),
        ("resources/subscribe", r#"{"uri":"a:b"}"#),
        ("resources/unsubscribe", r#"{"uri":"a:b"}"#),
        (
            "completion/complete",
            r#"{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""},"context":null}"#,
        ),
        ("tasks/get", r#"{"taskId":"t"}"#),
        ("tasks/result", r#"{"taskId":"t"}"#),
        ("tasks/list", r#"{"cursor":null}"#),
        ("tasks/cancel", r#"{"taskId":"t"}"#),
        ("logging/setLevel", r#"{"level":"emergency"}"#),
    ];
    for revision in EVERY {
        for (method, params) in table {
            assert_eq!(operation(&requesting(method, params), revision).unwrap().method(), method);
        }
    }
    assert!(matches!(asked(r#"{"jsonrpc":"2.0","id":"123","method":"ping"}"#).operation, Operation::Ping));
}

#[test]
fn what_cannot_be_asked_is_refused_by_its_code() {
    let table = [
        ("resources/lists", "{}", -32601),
        ("prompts/get", "{}", -32602),
        ("resources/read", "{}", -32602),
        ("resources/subscribe", r#"{"uri":5}"#, -32602),
        ("completion/complete", "{}", -32602),
        ("tasks/update", r#"{"taskId":"t"}"#, -32601),
        ("server/discover", "{}", -32601),
        ("initialize", "{}", -32600),
        ("tools/call", "{}", -32602),
        ("tools/call", r#"{"name":5}"#, -32602),
        ("tools/call", r#"{"name":"t","arguments":[]}"#, -32602),
        ("tools/call", r#"{"name":"t","task":true}"#, -32602),
        ("tools/call", r#"{"name":"t","task":{"ttl":"long"}}"#, -32602),
        ("tools/call", r#"{"name":"t","task":{"ttl":-1}}"#, -32602),
        ("tools/call", r#"{"name":"t","_meta":[]}"#, -32602),
        ("tools/call", r#"{"name":"t","_meta":{"progressToken":1.5}}"#, -32602),
        ("tools/list", r#"{"cursor":5}"#, -32602),
        ("tasks/get", "{}", -32602),
        ("tasks/get", r#"{"taskId":null}"#, -32602),
        ("tasks/result", r#"{"taskId":7}"#, -32602),
        ("tasks/cancel", r#"{"taskId":"a\nb"}"#, -32602),
        ("tasks/list", r#"{"cursor":{}}"#, -32602),
        ("logging/setLevel", "{}", -32602),
        ("logging/setLevel", r#"{"level":"loud"}"#, -32602),
    ];
    for (method, params, code) in table {
        let error = operation(&requesting(method, params), LATEST).unwrap_err();
        assert_eq!(error.code, code, "{method} {params}: {error}");
        assert_ne!(error.http_status(), 404, "in a session that would mean that the session is gone");
    }
}

#[test]
fn what_a_client_leaves_out_it_may_send_as_null() {
    let message =
        requesting("tools/call", r#"{"name":"t","arguments":null,"task":null,"_meta":{"progressToken":null}}"#);
    let request = asked(&message);
    assert!(request.progress_token.is_none());
    let Operation::CallTool(call) = request.operation else { panic!() };
    assert_eq!((call.arguments.get(), call.task), ("{}", None));
}

#[test]
fn a_call_says_for_how_long_it_wants_its_task() {
    let table = [
        ("{}", Ttl::Usual),
        (r#"{"ttl":0}"#, Ttl::Ms(0)),
        (r#"{"ttl":60000}"#, Ttl::Ms(60_000)),
        (r#"{"ttl":1.5}"#, Ttl::Ms(2)),
        (r#"{"ttl":1e300}"#, Ttl::Ms(u64::MAX)),
        (r#"{"ttl":null,"pollInterval":5}"#, Ttl::Unlimited),
    ];
    for (task, ttl) in table {
        let params = format!(r#"{{"name":"t","task":{task}}}"#);
        for revision in EVERY {
            let message = requesting("tools/call", &params);
            let Operation::CallTool(call) = operation(&message, revision).unwrap() else { panic!() };
            let expected = revision.has_tasks().then_some(TaskRequest { ttl, ..TaskRequest::default() });
            assert_eq!(call.task, expected, "{task} at {revision:?}");
        }
    }
}

#[test]
fn a_tool_and_its_caller_must_agree_about_tasks() {
    use TaskSupport::{Forbidden, Optional, Required};
    let table = [
        (LATEST, Forbidden, true, Err(-32601)),
        (LATEST, Forbidden, false, Ok(false)),
        (LATEST, Optional, true, Ok(true)),
        (LATEST, Optional, false, Ok(false)),
        (LATEST, Required, true, Ok(true)),
        (LATEST, Required, false, Err(-32601)),
        // Older clients cannot ask for a task, and their revisions have no error for a tool that requires one.
        (Revision::V2025_06_18, Forbidden, true, Ok(false)),
        (Revision::V2025_06_18, Required, false, Ok(false)),
        (Revision::V2025_03_26, Required, true, Ok(false)),
    ];
    for (revision, support, asks, expected) in table {
        let tool = ToolDeclaration::draft("t").task_support(support).declare().unwrap();
        let message = requesting("tools/call", if asks { r#"{"name":"t","task":{}}"# } else { r#"{"name":"t"}"# });
        let Operation::CallTool(call) = operation(&message, revision).unwrap() else { panic!() };
        let became = TASKS.call_mode(&call, &tool, peer(revision)).map_err(|error| error.code);
        let became = became.map(|mode| mode == longhaul_wire::CallMode::Task);
        assert_eq!(became, expected, "{support:?} asked {asks} at {revision:?}");
    }
}

#[test]
fn a_request_carries_its_token() {
    let message = requesting(
        "tools/call",
        r#"{"name":"t","_meta":{"progressToken":"abc123","modelcontextprotocol.io/task":{"taskId":"mine"}}}"#,
    );
    assert_eq!(asked(&message).progress_token.unwrap().as_json(), "\"abc123\"");
}

#[test]
fn the_parameter_names_the_task_and_not_the_related_task_key() {
    let params = format!(r#"{{"taskId":"right","_meta":{{"{RELATED_TASK}":{{"taskId":"wrong"}}}}}}"#);
    let message = requesting("tasks/get", &params);
    let Operation::GetTask(id) = asked(&message).operation else { panic!() };
    assert_eq!(id.as_str(), "right");
}

#[test]
fn notices_are_told_apart_and_bad_ones_ignored() {
    let telling =
        |method: &str, params: &str| format!(r#"{{"jsonrpc":"2.0","method":"notifications/{method}"{params}}}"#);
    assert!(matches!(told(&telling("initialized", "")), ClientNotification::Initialized));
    assert!(matches!(told(&telling("roots/list_changed", "")), ClientNotification::RootsChanged));

    let message = telling("cancelled", r#","params":{"requestId":"123","reason":"User requested cancellation"}"#);
    let ClientNotification::Cancelled(cancelled) = told(&message) else { panic!() };
    assert_eq!(cancelled.request_id.as_json(), "\"123\"");
    assert_eq!(cancelled.reason.as_deref(), Some("User requested cancellation"));
    assert_eq!(value(&cancelled.notification()), value(&message), "the same in the other direction");

    let message = telling(
        "progress",
        r#","params":{"progressToken":"abc123","progress":50,"total":100,"message":"Reticulating splines..."}"#,
    );
    let ClientNotification::Progress(progress) = told(&message) else { panic!() };
    assert_eq!((progress.token.as_json(), progress.done, progress.total), ("\"abc123\"", 50.0, Some(100.0)));
    assert_eq!(progress.message.as_deref(), Some("Reticulating splines..."));

    for params in [
        telling("cancelled", ""),
        telling("cancelled", r#","params":{"requestId":null}"#),
        telling("progress", r#","params":{"progressToken":1}"#),
        telling("tasks/status", r#","params":{"taskId":"t","status":"sleeping"}"#),
        telling("tasks/status", ""),
        telling("never/heard/of", ""),
    ] {
        assert!(matches!(told(&params), ClientNotification::Ignored), "{params}");
    }
}

#[test]
fn answers_to_our_requests_come_with_their_id() {
    let Incoming::Response(response) = incoming(r#"{"jsonrpc":"2.0","id":"q-1","result":{"action":"decline"}}"#) else {
        panic!()
    };
    assert_eq!(response.id.unwrap().as_json(), "\"q-1\"");
    assert_eq!(response.outcome.unwrap().get(), r#"{"action":"decline"}"#);
    let message = r#"{"jsonrpc":"2.0","id":3,"error":{"code":-1,"message":"User rejected sampling request"}}"#;
    let Incoming::Response(response) = incoming(message) else { panic!() };
    assert_eq!(response.outcome.unwrap_err().code, -1);
}

#[test]
fn a_bad_answer_is_not_refused_under_our_own_id() {
    for message in [
        r#"{"jsonrpc":"2.0","id":1,"result":5}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}"#,
    ] {
        let rejected = read(message.as_bytes(), LATEST).unwrap_err();
        assert_eq!(rejected.id, None, "the client would take it for an answer to its own request 1");
    }
}

#[test]
fn levels_are_read_and_ordered() {
    for (index, level) in LogLevel::ALL.into_iter().enumerate() {
        let message = requesting("logging/setLevel", &format!(r#"{{"level":"{}"}}"#, level.as_str()));
        let Ok(Operation::SetLogLevel(read)) = operation(&message, LATEST) else { panic!() };
        assert_eq!(read, level);
        assert!(LogLevel::ALL[index..].iter().all(|worse| *worse >= level));
        // From the level on that was asked for; else as its era has it.
        let data = json("1");
        let line = LogMessage { level, logger: None, data: &data };
        for (other, set) in LogLevel::ALL.into_iter().enumerate() {
            assert_eq!(logging::is_wanted(line, Some(set), LATEST), index >= other);
            assert_eq!(logging::is_wanted(line, Some(set), Revision::V2026_07_28), index >= other);
        }
        assert_eq!(logging::is_wanted(line, None, LATEST), level != LogLevel::Debug);
        assert!(!logging::is_wanted(line, None, Revision::V2026_07_28));
    }
    assert_eq!(acknowledge(&to(&1.into(), LATEST)), r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
}

#[test]
fn one_message_is_one_message_at_every_revision() {
    for revision in EVERY {
        let read = read(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, revision).unwrap();
        assert!(matches!(read, Incoming::Request(_)));
    }
}
