use std::time::Duration;

use longhaul::SessionLimits;
use longhaul_testkit::tools::{Door, accepted_name, open, open_session, open_session_within, server};
use longhaul_testkit::{LATEST, SessionClient, TestServer, initialize_params};
use serde_json::json;

const GONE: &str = r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request: there is no such session; begin a new one with `initialize`"}}"#;

/// The HTTP status and the error code of a response.
async fn refused(client: &SessionClient, method: &str, headers: &[(&str, &str)]) -> (u16, String) {
    let message = client.message("ping", json!({}));
    let body = if method == "POST" { message.to_string() } else { String::new() };
    let mut answer = client.http(method, headers, body).await;
    let text = answer.next().await.map(|message| message.to_string()).unwrap_or_default();
    (answer.status, text)
}

#[tokio::test]
async fn a_missing_session_is_malformed_and_an_unknown_one_not_found() {
    let (_server, _, client) = open_session().await;
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
    // The revision of the session counts, whatever the version header says.
    for version in ["2025-03-26", "2025-06-18", ""] {
        assert_eq!(refused(&client, "POST", &[("mcp-protocol-version", version)]).await.0, 200, "{version}");
    }
    let put = client.http("PUT", &[], "").await;
    assert_eq!((put.status, put.headers["allow"].to_str().unwrap()), (405, "GET, POST, DELETE"));
}

#[tokio::test]
async fn an_ended_session_is_gone_its_streams_close_and_its_tasks_go_on() {
    let (server, door, client) = open_session().await;
    let id = client.create("wait", json!({})).await;
    let mut listening = client.listen(None).await;
    let mut waiting = client.send("tools/call", json!({ "name": "greet", "arguments": {} })).await;
    waiting.next_of("elicitation/create").await;

    client.end().await;
    assert!(waiting.rest().await.iter().all(|message| message.get("result").is_none()));
    listening.rest().await;
    for method in ["POST", "GET", "DELETE"] {
        assert_eq!(refused(&client, method, &[]).await.0, 404, "{method}");
    }
    let other = open(&server).await;
    assert_eq!(other.get(&id).await["status"], "working");
    door.open(1);
    assert_eq!(other.result("tasks/result", json!({ "taskId": id })).await["content"][0]["text"], "waited");
}

#[tokio::test]
async fn a_session_expires_after_a_week() {
    let (server, clock) = TestServer::start_with_clock(server(&Door::closed())).await;
    let client = open(&server).await;
    clock.advance_ms(7 * 24 * 60 * 60 * 1_000 - 1);
    assert_eq!(client.result("ping", json!({})).await, json!({}));
    clock.advance_ms(1);
    assert_eq!(refused(&client, "POST", &[]).await.0, 404);
}

#[tokio::test]
async fn a_session_too_many_is_refused_unless_an_idle_one_makes_way() {
    let (server, _, first) = open_session_within(SessionLimits::default().sessions_max(2)).await;
    let _listening = first.listening().await;
    let second = open(&server).await;
    // The second session is idle: it is dropped, and restored when there is room.
    let third = open(&server).await;
    let _listening_too = third.listening().await;
    let params = initialize_params(LATEST, json!({}));
    let mut answer = SessionClient::new(&server).send("initialize", params).await;
    assert_eq!((answer.status, answer.headers["retry-after"].to_str().unwrap()), (503, "1"));
    let full = json!({ "code": "TOO_MANY_SESSIONS", "retryAfterMs": 1_000 });
    assert_eq!(answer.must_next().await["error"]["data"], full);
    assert_eq!(refused(&second, "POST", &[]).await.0, 503);
    third.end().await;
    assert_eq!(second.result("ping", json!({})).await, json!({}), "taken up again from its token");
}

#[tokio::test]
async fn an_idle_session_is_dropped_and_restored_from_its_token() {
    let (server, _, client) =
        open_session_within(SessionLimits::default().idle_time_max(Duration::from_millis(1))).await;
    let mut metrics = server.client().await;
    metrics.until_metric("longhaul_sessions", 0.0).await;
    assert_eq!(client.result("ping", json!({})).await, json!({}));
}

#[tokio::test]
async fn requests_under_way_are_counted_and_one_id_is_used_once() {
    let (_server, _, client) = open_session_within(SessionLimits::default().requests_max(2)).await;
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
        client.respond(&question, accepted_name("Ada")).await;
        assert_eq!(call.last().await["result"]["content"][0]["text"], "Hello, Ada!");
    }
    client.call("echo", json!({ "text": "free again" })).await;
}
