use std::sync::Arc;

use longhaul::{Limits, SessionLimits};
use longhaul_store::{ManualClock, memory};
use longhaul_task::Timestamp;
use serde_json::json;

use crate::kit::{Door, SHORT, forms, known, limits, named, server, start, with_tokens};
use crate::support::stateful::Stateful;
use crate::support::{Launch, Local};

const GONE: &str = r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request: there is no such session; begin a new one with `initialize`"}}"#;

/// The status and the error code of an answer.
async fn refused(client: &Stateful, method: &str, headers: &[(&str, &str)]) -> (u16, String) {
    let message = client.message("ping", json!({}));
    let body = if method == "POST" { message.to_string() } else { String::new() };
    let mut answer = client.http(method, headers, body).await;
    let text = answer.next().await.map(|message| message.to_string()).unwrap_or_default();
    (answer.status, text)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_without_a_session_is_malformed_and_with_an_unknown_one_not_found() {
    let (server, _) = start().await;
    let client = Stateful::open(server.address, forms()).await;
    let token = client.session.clone().unwrap();
    let touched = format!("{}{}", if token.starts_with('A') { 'B' } else { 'A' }, &token[1..]);
    for method in ["POST", "GET", "DELETE"] {
        assert_eq!(refused(&client, method, &[("mcp-session-id", "")]).await.0, 400, "{method}");
        for wrong in ["nonsense", touched.as_str(), "../../etc", "=?x"] {
            let (status, text) = refused(&client, method, &[("mcp-session-id", wrong)]).await;
            let gone: serde_json::Value = serde_json::from_str(GONE).unwrap();
            assert_eq!((status, text), (404, gone.to_string()), "{method} {wrong}");
        }
        for version in ["2024-11-05", "1.0", "2025-11-26"] {
            assert_eq!(refused(&client, method, &[("mcp-protocol-version", version)]).await.0, 400, "{version}");
        }
    }
    // The session counts for more than a header of another revision, or none.
    for version in ["2025-03-26", "2025-06-18", ""] {
        assert_eq!(refused(&client, "POST", &[("mcp-protocol-version", version)]).await.0, 200, "{version}");
    }
    let put = client.http("PUT", &[], "").await;
    assert_eq!((put.status, put.headers["allow"].to_str().unwrap()), (405, "GET, POST, DELETE"));
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_elses_session_looks_like_none() {
    let server = Local::start(with_tokens(&Door::closed())).await;
    let ada = known(&server, "ada").initialize("2025-11-25", forms()).await;
    let mut thief = known(&server, "bob").initialize("2025-11-25", forms()).await;
    thief.session.clone_from(&ada.session);
    let gone: serde_json::Value = serde_json::from_str(GONE).unwrap();
    for method in ["POST", "GET", "DELETE"] {
        assert_eq!(refused(&thief, method, &[]).await, (404, gone.to_string()), "{method}");
    }
    assert_eq!(ada.result("ping", json!({})).await, json!({}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_survives_a_restart_of_the_server() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tasks.db");
    let first = Launch::conformance().store(&file).start().await;
    let client = Stateful::open(first.address(), forms()).await;
    let id = client.create("echo", json!({ "text": "still here" })).await;
    client.until(&id, "completed").await;
    first.kill().await;

    let second = Launch::conformance().store(&file).start().await;
    let mut later = Stateful::new(second.address());
    later.session.clone_from(&client.session);
    let result = later.result("tasks/result", json!({ "taskId": id })).await;
    assert_eq!(result["content"][0]["text"], "still here");
    // What the client said it can do is still known.
    let ask = json!({ "name": "test_input_required_result_elicitation", "arguments": {} });
    let mut call = later.send("tools/call", ask).await;
    let question = call.next_of("elicitation/create").await;
    later.respond(&question, named("Ada")).await;
    assert_eq!(call.last().await["result"]["content"][0]["text"], "Hello, Ada!");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ended_session_is_gone_its_streams_close_and_its_tasks_go_on() {
    let (server, door) = start().await;
    let client = Stateful::open(server.address, forms()).await;
    let id = client.create("wait", json!({})).await;
    let mut listening = client.listen(None).await;
    let mut waiting = client.send("tools/call", json!({ "name": "greet", "arguments": {} })).await;
    waiting.next_of("elicitation/create").await;

    assert_eq!(client.http("DELETE", &[], "").await.status, 204);
    assert!(waiting.rest().await.iter().all(|message| message.get("result").is_none()));
    listening.rest().await;
    for method in ["POST", "GET", "DELETE"] {
        assert_eq!(refused(&client, method, &[]).await.0, 404, "{method}");
    }
    let other = Stateful::open(server.address, forms()).await;
    assert_eq!(other.get(&id).await["status"], "working");
    door.open(1);
    assert_eq!(other.result("tasks/result", json!({ "taskId": id })).await["content"][0]["text"], "waited");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_expires_after_a_week() {
    let clock = ManualClock::at(Timestamp::from_ms(1_000_000));
    let store = Arc::new(memory::open(clock.clone()).unwrap());
    let server = Local::start_on(server(&Door::closed()), store).await;
    let client = Stateful::open(server.address, forms()).await;
    clock.advance_ms(7 * 24 * 60 * 60 * 1_000 - 1);
    assert_eq!(client.result("ping", json!({})).await, json!({}));
    clock.advance_ms(1);
    assert_eq!(refused(&client, "POST", &[]).await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_session_too_many_is_refused_unless_an_idle_one_makes_way() {
    let limits = Limits::default().session(SessionLimits::default().sessions_max(2));
    let server = Local::start(server(&Door::closed()).limits(limits)).await;
    let first = Stateful::open(server.address, forms()).await;
    let mut listening = first.listen(None).await;
    listening.begun().await;
    let second = Stateful::open(server.address, forms()).await;
    // The second is idle: it makes way, and comes back when there is room.
    let third = Stateful::open(server.address, forms()).await;
    let mut listening_too = third.listen(None).await;
    listening_too.begun().await;
    let params =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let mut answer = Stateful::new(server.address).send("initialize", params).await;
    assert_eq!((answer.status, answer.headers["retry-after"].to_str().unwrap()), (503, "1"));
    let full = json!({ "code": "TOO_MANY_SESSIONS", "retryAfterMs": 1_000 });
    assert_eq!(answer.must_next().await["error"]["data"], full);
    assert_eq!(refused(&second, "POST", &[]).await.0, 503);
    assert_eq!(third.http("DELETE", &[], "").await.status, 204);
    assert_eq!(second.result("ping", json!({})).await, json!({}), "taken up again from its token");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_owner_cannot_take_every_session() {
    let limits = Limits::default().session(SessionLimits::default().sessions_per_owner_max(1));
    let server = Local::start(with_tokens(&Door::closed()).limits(limits)).await;
    let ada = known(&server, "ada").initialize("2025-11-25", forms()).await;
    let mut listening = ada.listen(None).await;
    listening.begun().await;
    let params =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let mut answer = known(&server, "ada").send("initialize", params).await;
    assert_eq!(answer.status, 503);
    assert_eq!(answer.must_next().await["error"]["data"]["code"], "TOO_MANY_SESSIONS");
    let bob = known(&server, "bob").initialize("2025-11-25", forms()).await;
    assert_eq!(bob.result("ping", json!({})).await, json!({}));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_session_is_let_go_and_taken_up_again() {
    let limits = Limits::default().session(SessionLimits::default().idle_time_max(SHORT));
    let server = Local::start(server(&Door::closed()).limits(limits)).await;
    let client = Stateful::open(server.address, forms()).await;
    let mut metrics = server.client().await;
    metrics.until_metric("longhaul_sessions", 0.0).await;
    assert_eq!(client.result("ping", json!({})).await, json!({}));
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_under_way_are_counted_and_one_id_is_used_once() {
    let door = Door::closed();
    let session = SessionLimits::default().requests_max(2);
    let server = Local::start(server(&door).limits(limits(session))).await;
    let client = Stateful::open(server.address, forms()).await;
    let greet = json!({ "name": "greet", "arguments": {} });
    let first = client.message("tools/call", greet.clone());
    let mut calls = Vec::new();
    for message in [first.clone(), client.message("tools/call", greet.clone())] {
        let mut call = client.post(message.to_string()).await;
        let question = call.next_of("elicitation/create").await;
        calls.push((call, question));
    }
    let mut third = client.send("tools/call", greet).await;
    assert_eq!(third.last().await["error"]["data"]["code"], "TOO_MANY_IN_FLIGHT");
    assert_eq!(client.result("ping", json!({})).await, json!({}), "what is answered at once is not counted");
    let mut twice = client.post(first.to_string()).await;
    assert_eq!(twice.status, 400);
    assert!(twice.last().await["error"]["message"].as_str().unwrap().contains("still under way"));
    for (mut call, question) in calls {
        client.respond(&question, named("Ada")).await;
        assert_eq!(call.last().await["result"]["content"][0]["text"], "Hello, Ada!");
    }
    client.call("echo", json!({ "text": "free again" })).await;
}
