//! A session on a pipe.

use std::time::Duration;

use longhaul::ServerLimits;
use longhaul_receiver::Body;
use longhaul_server::local;
use longhaul_task::{Outcome, TaskId, TaskKey};
use longhaul_testkit::tools::{accepted_name, forms};
use longhaul_testkit::{PipeClient, TestServer, conformance};
use serde_json::{Value, json};

async fn open(revision: &str) -> (TestServer, PipeClient) {
    let server = TestServer::start(conformance()).await;
    let pipe = PipeClient::connect(&server, local(), ServerLimits::default()).initialize(revision, forms()).await;
    (server, pipe)
}

#[tokio::test]
async fn a_session_works_as_over_http() {
    let (_server, mut pipe) = open("2025-11-25").await;
    assert_eq!(pipe.session_result("ping", json!({})).await, json!({}));
    let tools = pipe.session_result("tools/list", json!({})).await;
    assert!(tools["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "echo"));
    let echo = json!({ "name": "echo", "arguments": { "text": "hi" } });
    assert_eq!(pipe.session_result("tools/call", echo).await["content"][0]["text"], "hi");

    let delete = json!({ "name": "confirm_delete", "arguments": { "filename": "a.txt" }, "task": {} });
    pipe.send_session_request("make", "tools/call", delete).await;
    // No message about the task comes before the response that creates it.
    let made = pipe.must_next().await;
    assert_eq!(made["id"], "make", "{made}");
    let id = made["result"]["task"]["taskId"].clone();
    let question = pipe.next_of("elicitation/create").await;
    let yes = json!({ "action": "accept", "content": { "confirm": true } });
    pipe.send_session_request("wait", "tasks/result", json!({ "taskId": id })).await;
    pipe.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": yes })).await;
    assert_eq!(pipe.response("wait").await["result"]["content"][0]["text"], "a.txt is deleted.");
    let listed = pipe.session_result("tasks/list", json!({})).await;
    // The owner is known, and the call without a task was one, too.
    assert_eq!(listed["tasks"].as_array().unwrap().len(), 2, "{listed}");
    pipe.finish().await;
}

#[tokio::test]
async fn a_call_asks_and_is_cancelled_on_the_same_pipe() {
    let (_server, mut pipe) = open("2025-06-18").await;
    let ask = json!({ "name": "test_input_required_result_elicitation", "arguments": {} });
    pipe.send_session_request("a", "tools/call", ask.clone()).await;
    let question = pipe.next_of("elicitation/create").await;
    pipe.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": accepted_name("Ada") })).await;
    assert_eq!(pipe.response("a").await["result"]["content"][0]["text"], "Hello, Ada!");

    pipe.send_session_request("b", "tools/call", ask).await;
    pipe.next_of("elicitation/create").await;
    pipe.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "b" } })).await;
    pipe.send_session_request("c", "ping", json!({})).await;
    loop {
        let message = pipe.must_next().await;
        assert_ne!(message["id"], "b", "a cancelled request is never answered");
        if message["id"] == "c" {
            break;
        }
    }
    pipe.finish().await;
}

#[tokio::test]
async fn both_eras_are_spoken_on_one_pipe_and_a_second_handshake_is_refused() {
    let (_server, mut pipe) = open("2025-11-25").await;
    pipe.send_request("newest", "tools/call", json!({ "name": "echo", "arguments": { "text": "hi" } })).await;
    let made = pipe.must_next().await;
    assert_eq!(made["result"]["resultType"], "task", "{made}");
    let id = &made["result"]["taskId"];
    let result = pipe.session_result("tasks/result", json!({ "taskId": id })).await;
    assert_eq!(result["content"][0]["text"], "hi");
    pipe.send_session_request("again", "initialize", json!({})).await;
    assert_eq!(pipe.response("again").await["error"]["code"], -32600);
    pipe.send(&json!({ "jsonrpc": "2.0", "id": "never asked", "result": {} })).await;
    assert_eq!(pipe.session_result("ping", json!({})).await, json!({}));
    pipe.finish().await;
}

#[tokio::test]
async fn a_batch_is_answered_on_one_line() {
    let (_server, mut pipe) = open("2025-03-26").await;
    let ping = |id: &str| json!({ "jsonrpc": "2.0", "id": id, "method": "ping" });
    pipe.send(&json!([ping("a"), ping("b")])).await;
    let answers = pipe.must_next().await;
    assert_eq!(answers.as_array().map(Vec::len), Some(2), "{answers}");
    pipe.finish().await;
}

#[tokio::test]
async fn an_open_batch_does_not_keep_the_next_message_from_being_read() {
    let (_server, mut pipe) = open("2025-03-26").await;
    let slow = json!({ "name": "slow_compute", "arguments": { "seconds": 1_000 } });
    let call = json!({ "jsonrpc": "2.0", "id": "slow", "method": "tools/call", "params": slow });
    let ping = |id: &str| json!({ "jsonrpc": "2.0", "id": id, "method": "ping" });
    pipe.send(&json!([call, ping("a"), ping("b")])).await;
    pipe.send(&ping("later")).await;
    assert_eq!(pipe.must_next().await["id"], "later");
    let params = json!({ "requestId": "slow" });
    pipe.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params })).await;
    let answers = pipe.must_next().await;
    let ids: Vec<_> = answers.as_array().unwrap().iter().map(|answer| answer["id"].clone()).collect();
    assert_eq!(ids, ["a", "b"], "the cancelled call has no response");
    pipe.finish().await;
}

#[tokio::test]
async fn a_batch_is_answered_on_one_line_also_after_notifications() {
    let (_server, mut pipe) = open("2025-03-26").await;
    let task = json!({ "modelcontextprotocol.io/task": { "taskId": "mine" } });
    let echo = json!({ "name": "echo", "arguments": { "text": "hi" }, "_meta": task });
    let call = json!({ "jsonrpc": "2.0", "id": "call", "method": "tools/call", "params": echo });
    pipe.send(&json!([call, { "jsonrpc": "2.0", "id": "ping", "method": "ping" }])).await;
    pipe.next_of("notifications/tasks/created").await;
    let answers = loop {
        let message = pipe.must_next().await;
        if message.is_array() {
            break message;
        }
        assert!(message.get("method").is_some(), "only notifications precede the responses: {message}");
    };
    let answers = answers.as_array().unwrap();
    assert_eq!((answers.len(), &answers[0]["id"], &answers[1]["id"]), (2, &json!("ping"), &json!("call")));
    assert_eq!(answers[1]["result"]["content"][0]["text"], "hi");
    pipe.finish().await;
}

#[tokio::test]
async fn a_wait_for_a_result_is_answered_at_the_end_of_file() {
    let (_server, mut pipe) = open("2025-11-25").await;
    let slow = json!({ "name": "slow_compute", "arguments": { "seconds": 1_000 }, "task": {} });
    let id = pipe.session_result("tools/call", slow).await["task"]["taskId"].clone();
    pipe.send_session_request("wait", "tasks/result", json!({ "taskId": id })).await;
    pipe.close();
    assert_eq!(pipe.response("wait").await["error"]["data"]["code"], "DRAINING");
    pipe.finish().await;
}

#[tokio::test]
async fn a_wait_that_begins_while_the_server_stops_is_answered_before_it_ends() {
    let (_server, mut pipe) = open("2025-11-25").await;
    let slow = json!({ "name": "slow_compute", "arguments": { "seconds": 1_000 }, "task": {} });
    let id = pipe.session_result("tools/call", slow).await["task"]["taskId"].clone();
    pipe.send_session_request("first", "tasks/result", json!({ "taskId": id })).await;
    pipe.session_result("ping", json!({})).await;
    tokio::time::pause();
    pipe.begin_stop();
    tokio::time::sleep(Duration::from_secs(2)).await;
    pipe.send_session_request("second", "tasks/result", json!({ "taskId": id })).await;
    for wait in ["first", "second"] {
        assert_eq!(pipe.response(wait).await["error"]["data"]["code"], "DRAINING");
    }
    pipe.rest().await;
}

#[tokio::test]
async fn a_server_that_stops_still_answers_and_hears_a_cancellation() {
    let (server, mut pipe) = open("2025-11-25").await;
    let task = json!({ "modelcontextprotocol.io/task": { "taskId": "mine" } });
    let slow = json!({ "name": "slow_compute", "arguments": { "seconds": 1_000 }, "_meta": task });
    pipe.send_session_request("call", "tools/call", slow).await;
    pipe.next_of("notifications/tasks/created").await;
    pipe.begin_stop();
    assert_eq!(pipe.session_result("ping", json!({})).await, json!({}));
    let params = json!({ "requestId": "call" });
    pipe.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params })).await;
    let answered = pipe.rest().await.into_iter().any(|message| message["id"] == "call");
    assert!(!answered, "the client does not wait for it any more");
    let key = TaskKey { owner: local().owner, id: TaskId::parse("mine").unwrap() };
    let task = server.receiver().engine().read(&key).await.unwrap().task;
    assert_eq!(task.phase.outcome(), Some(&Outcome::Cancelled));
}

#[tokio::test]
async fn before_the_handshake_only_a_ping_is_answered() {
    let server = TestServer::start(conformance()).await;
    let connection = server.receiver().connect(local(), 1);
    let response = async |method: &str| {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method });
        match connection.receive(message.to_string().into_bytes()).await.body {
            Body::Message(text) => serde_json::from_str::<Value>(&text).unwrap(),
            other => panic!("{other:?}"),
        }
    };
    for _ in 0..2 {
        assert_eq!(response("ping").await, json!({ "jsonrpc": "2.0", "id": 1, "result": {} }));
    }
    let refused = response("tools/list").await;
    let message = "a request needs a session, which `initialize` opens, or the `_meta` of 2026-07-28";
    assert_eq!(refused["error"], json!({ "code": -32_602, "message": message }));
}
