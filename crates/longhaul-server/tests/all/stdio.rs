//! Standard input and output: one message per line.

use std::time::Duration;

use longhaul::{RateLimits, Server, ServerLimits};
use longhaul_server::{local, stdio};
use longhaul_testkit::{PipeClient, TestServer, VERSION, conformance, in_time, stateless_message, tasks_and_forms};
use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio_util::sync::CancellationToken;

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

async fn connect() -> (TestServer, PipeClient) {
    let server = TestServer::start(conformance()).await;
    let pipe = PipeClient::connect(&server, local(), ServerLimits::default());
    (server, pipe)
}

fn message(id: &Value, method: &str, params: Value) -> Value {
    stateless_message(id, method, params, &tasks_and_forms())
}

/// An ordinary call that takes longer than any test.
fn endless(id: &Value) -> Value {
    let params = json!({ "name": "slow_compute", "arguments": { "seconds": 1_000_000 } });
    stateless_message(id, "tools/call", params, &json!({}))
}

fn cancelled(id: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } })
}

#[tokio::test]
async fn every_operation_works_as_over_http() {
    let (_server, mut pipe) = connect().await;
    let found = pipe.result("server/discover", json!({})).await;
    assert_eq!(found["supportedVersions"], json!([VERSION]));
    assert_eq!(found["capabilities"]["extensions"], json!({ "io.modelcontextprotocol/tasks": {} }));
    let listed = pipe.result("tools/list", json!({})).await;
    assert!(listed["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "echo"));
    let hello = pipe.result("tools/call", json!({ "name": "greet", "arguments": { "name": "Ada" } })).await;
    assert_eq!(hello["content"][0]["text"], "Hello, Ada!");

    let echo = pipe.create("echo", json!({ "text": "done" })).await;
    let done = pipe.get_until(&echo, |task| task["status"] == "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "done");

    let asks = pipe.create("confirm_delete", json!({ "filename": "a.txt" })).await;
    let task = pipe.get_until(&asks, |task| task["status"] == "input_required").await;
    let key = task["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let yes = json!({ "action": "accept", "content": { "confirm": true } });
    pipe.result("tasks/update", json!({ "taskId": asks, "inputResponses": { key: yes } })).await;
    let done = pipe.get_until(&asks, |task| task["status"] == "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "a.txt is deleted.");

    let slow = pipe.create("slow_compute", json!({ "seconds": 1_000 })).await;
    pipe.result("tasks/cancel", json!({ "taskId": slow })).await;
    assert_eq!(pipe.result("tasks/get", json!({ "taskId": slow })).await["status"], "cancelled");
    assert_eq!(pipe.request("tasks/get", json!({ "taskId": "unknown" })).await["error"]["code"], -32602);

    assert_eq!(pipe.finish().await, [] as [Value; 0]);
}

#[tokio::test]
async fn a_cancelled_request_is_never_answered() {
    let (_server, mut pipe) = connect().await;
    pipe.send(&endless(&json!("slow"))).await;
    pipe.send(&cancelled(&json!("slow"))).await;
    // An unknown ID, or a value that is not an ID, is ignored.
    pipe.send(&cancelled(&json!("unknown"))).await;
    pipe.send(&cancelled(&json!(null))).await;
    pipe.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled" })).await;
    pipe.send(&json!({ "jsonrpc": "2.0", "method": "notifications/unknown" })).await;
    pipe.result("tools/list", json!({})).await;
    assert_eq!(pipe.finish().await, [] as [Value; 0]);
}

#[tokio::test]
async fn cancelling_the_request_never_cancels_the_task_it_made() {
    let (_server, mut pipe) = connect().await;
    let id = pipe.create("slow_compute", json!({ "seconds": 1_000 })).await;
    pipe.send(&cancelled(&json!("r"))).await;
    assert_eq!(pipe.result("tasks/get", json!({ "taskId": id })).await["status"], "working");
    pipe.result("tasks/cancel", json!({ "taskId": id })).await;
    assert_eq!(pipe.finish().await, [] as [Value; 0]);
}

#[tokio::test]
async fn a_cancelled_subscription_is_silent_from_then_on() {
    let (_server, mut pipe) = connect().await;
    let id = pipe.create("slow_compute", json!({ "seconds": 1_000 })).await;
    for subscription in ["gone", "stays"] {
        let params = json!({ "notifications": { "taskIds": [id] } });
        pipe.send(&message(&json!(subscription), "subscriptions/listen", params)).await;
        let first = pipe.must_next().await;
        assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
        assert_eq!(first["params"]["_meta"][SUBSCRIPTION], subscription);
        let second = pipe.must_next().await;
        assert_eq!((&second["method"], &second["params"]["taskId"]), (&json!("notifications/tasks"), &json!(id)));
        assert_eq!(second["params"]["_meta"][SUBSCRIPTION], subscription);
    }
    pipe.send(&cancelled(&json!("gone"))).await;
    pipe.send(&message(&json!("c"), "tasks/cancel", json!({ "taskId": id }))).await;
    // The other stream shows the end of its task, beside the response to the cancellation, and then its own response.
    let both = [pipe.must_next().await, pipe.must_next().await];
    let pushed = both.iter().find(|message| message["method"] == "notifications/tasks").expect("a push");
    assert_eq!(
        (&pushed["params"]["_meta"][SUBSCRIPTION], &pushed["params"]["status"]),
        (&json!("stays"), &json!("cancelled"))
    );
    assert!(both.iter().any(|message| message["id"] == "c"), "{both:?}");
    let rest = pipe.finish().await;
    assert_eq!(rest.len(), 1, "{rest:?}");
    assert_eq!((&rest[0]["id"], &rest[0]["result"]["_meta"][SUBSCRIPTION]), (&json!("stays"), &json!("stays")));
}

#[tokio::test]
async fn progress_precedes_its_result_and_requests_do_not_wait() {
    let (_server, mut pipe) = connect().await;
    pipe.send(&endless(&json!("endless"))).await;
    let params = json!({ "name": "test_tool_with_progress", "_meta": { "progressToken": "p" } });
    pipe.send(&message(&json!("progress"), "tools/call", params)).await;
    pipe.send(&message(&json!("list"), "tools/list", json!({}))).await;
    let (mut progress, mut answered) = (Vec::new(), Vec::new());
    while answered.len() < 2 {
        let message = pipe.must_next().await;
        if message["method"] == "notifications/progress" {
            assert_eq!(message["params"]["progressToken"], "p");
            assert!(!answered.contains(&json!("progress")), "progress after the result");
            progress.push(message["params"]["progress"].as_f64().unwrap());
        } else {
            answered.push(message["id"].clone());
        }
    }
    assert_eq!(progress, [0.0, 50.0, 100.0]);
    assert_eq!(answered, [json!("list"), json!("progress")], "the quick one does not wait for the slow ones");
    pipe.send(&cancelled(&json!("endless"))).await;
    assert_eq!(pipe.finish().await, [] as [Value; 0]);
}

#[tokio::test]
async fn an_id_that_is_under_way_is_refused_and_can_still_be_cancelled() {
    let (_server, mut pipe) = connect().await;
    pipe.send(&endless(&json!(5))).await;
    pipe.send(&message(&json!(5), "tools/list", json!({}))).await;
    let refused = pipe.must_next().await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(5), &json!(-32600)), "{refused}");
    // The ID 1 and the ID "1" are different.
    pipe.send(&message(&json!("5"), "tools/list", json!({}))).await;
    assert_eq!(pipe.must_next().await["id"], "5");

    pipe.send(&cancelled(&json!(5))).await;
    pipe.send(&message(&json!(5), "tools/list", json!({}))).await;
    let answered = pipe.must_next().await;
    assert!(answered["id"] == 5 && answered.get("result").is_some(), "the ID is free again: {answered}");
    assert_eq!(pipe.finish().await, [] as [Value; 0], "the first request is gone and not waited for");
}

#[tokio::test]
async fn a_line_that_is_no_message_is_refused_and_the_next_one_answered() {
    let (_server, mut pipe) = connect().await;
    let limit = ServerLimits::default().message_bytes_max;
    let good = message(&json!(1), "tools/list", json!({})).to_string();
    let at_the_limit = format!("{good}{}", " ".repeat(limit - good.len()));
    let too_long = format!("{at_the_limit} ");
    let way_too_long = "x".repeat(3 * limit);
    let table: &[(&[u8], Option<i64>, Value)] = &[
        (b"nonsense", Some(-32700), Value::Null),
        (b"{", Some(-32700), Value::Null),
        (b"\xff\xfe", Some(-32700), Value::Null),
        (b"\0", Some(-32700), Value::Null),
        (b"[]", Some(-32600), Value::Null),
        (b"null", Some(-32600), Value::Null),
        (br#"{"jsonrpc":"2.0","id":1,"result":{}}"#, Some(-32600), Value::Null),
        (br#"{"jsonrpc":"2.0","id":7,"method":5}"#, Some(-32600), json!(7)),
        (br#"{"jsonrpc":"2.0","id":null,"method":"tools/list"}"#, Some(-32600), Value::Null),
        (br#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#, Some(-32602), json!(7)),
        (br#"{"jsonrpc":"2.0","id":7,"method":"initialize","params":{}}"#, Some(-32602), json!(7)),
        (at_the_limit.as_bytes(), None, json!(1)),
        (too_long.as_bytes(), Some(-32600), Value::Null),
        (way_too_long.as_bytes(), Some(-32600), Value::Null),
    ];
    for (line, code, id) in table {
        pipe.write(line).await;
        pipe.write(b"\n").await;
        let answer = pipe.must_next().await;
        let shown = String::from_utf8_lossy(&line[..line.len().min(60)]);
        assert_eq!(answer["error"]["code"].as_i64(), *code, "{shown}: {answer}");
        assert_eq!(answer.get("id").cloned().unwrap_or_default(), *id, "{shown}: {answer}");
    }
    // Empty lines are ignored, and a line may end with CR LF.
    pipe.write(b"\n  \r\n\n").await;
    pipe.write(format!("{good}\r\n").as_bytes()).await;
    assert_eq!(pipe.must_next().await["id"], 1);
    assert_eq!(pipe.finish().await, [] as [Value; 0]);
}

#[tokio::test]
async fn requests_before_the_end_of_file_are_answered() {
    let (_server, mut pipe) = connect().await;
    for id in 0..20 {
        pipe.send(&message(&json!(id), "tools/list", json!({}))).await;
    }
    // The last line may have no line end.
    pipe.write(message(&json!(20), "server/discover", json!({})).to_string().as_bytes()).await;
    let answers = pipe.finish().await;
    let mut ids: Vec<i64> = answers.iter().map(|answer| answer["id"].as_i64().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..=20).collect::<Vec<_>>());
}

fn is_refused(response: &Value, id: &str, code: &str) -> bool {
    assert_eq!(response["id"], id, "{response}");
    let error = &response["error"];
    let is_refused = error["data"]["code"] == code;
    assert_eq!(error["data"]["retryAfterMs"].as_u64().is_some_and(|ms| ms > 0), is_refused, "{response}");
    is_refused
}

#[tokio::test]
async fn a_client_has_so_many_requests_open_and_a_cancelled_one_makes_room() {
    let server = TestServer::start(Server::new("test")).await;
    let mut pipe = PipeClient::connect(&server, local(), ServerLimits::default().in_flight_max(2));
    for id in ["one", "two"] {
        pipe.send_request(id, "subscriptions/listen", json!({ "notifications": {} })).await;
        assert_eq!(pipe.must_next().await["method"], "notifications/subscriptions/acknowledged");
    }
    pipe.send_request("three", "tools/list", json!({})).await;
    assert!(is_refused(&pipe.must_next().await, "three", "TOO_MANY_IN_FLIGHT"));
    // The cancellation is read although the limit of requests is reached.
    pipe.send(&cancelled(&json!("one"))).await;
    in_time("room for one more", async {
        loop {
            pipe.send_request("three", "tools/list", json!({})).await;
            let response = pipe.must_next().await;
            if !is_refused(&response, "three", "TOO_MANY_IN_FLIGHT") {
                assert!(response.get("result").is_some(), "{response}");
                break;
            }
        }
    })
    .await;
    let rest = pipe.finish().await;
    assert_eq!(rest.len(), 1, "{rest:?}");
    assert_eq!((&rest[0]["id"], &rest[0]["result"]["resultType"]), (&json!("two"), &json!("complete")));
}

/// The `retryAfterMs` of a refused request.
fn refused_for(response: &Value) -> Option<std::time::Duration> {
    let error = response.get("error")?;
    assert_eq!(error["data"]["code"], "TOO_MANY_REQUESTS", "{response}");
    Some(std::time::Duration::from_millis(error["data"]["retryAfterMs"].as_u64().expect("a number")))
}

#[tokio::test]
async fn a_client_that_asks_too_often_is_refused_in_both_eras_and_served_again() {
    let limits = RateLimits::off().others_per_second(1).others_burst(3);
    let server = TestServer::start(Server::new("test").rate_limits(limits)).await;
    let mut pipe = PipeClient::connect(&server, local(), ServerLimits::default());
    let hello = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
    });
    let session =
        |method: &str, params: &Value| json!({ "jsonrpc": "2.0", "id": method, "method": method, "params": params });
    for request in [message(&json!("tools/list"), "tools/list", json!({})), session("ping", &json!({}))] {
        if request["method"] == "ping" {
            // The handshake of the session counts, too.
            pipe.send(&session("initialize", &hello)).await;
            while let Some(wait) = refused_for(&pipe.must_next().await) {
                tokio::time::sleep(wait).await;
                pipe.send(&session("initialize", &hello)).await;
            }
        }
        let wait = loop {
            pipe.send(&request).await;
            let response = pipe.must_next().await;
            assert_eq!(response["id"], request["method"]);
            if let Some(wait) = refused_for(&response) {
                break wait;
            }
        };
        tokio::time::sleep(wait).await;
        pipe.send(&request).await;
        assert_eq!(refused_for(&pipe.must_next().await), None, "{request} after the wait");
    }
    assert_eq!(pipe.finish().await, [] as [Value; 0]);
}

#[tokio::test]
async fn a_stop_ends_subscriptions_with_their_response() {
    let (_server, mut pipe) = connect().await;
    pipe.send_request("s", "subscriptions/listen", json!({ "notifications": { "taskIds": [] } })).await;
    assert_eq!(pipe.must_next().await["method"], "notifications/subscriptions/acknowledged");
    pipe.begin_stop();
    let rest = pipe.rest().await;
    assert_eq!(rest.len(), 1, "{rest:?}");
    assert_eq!((&rest[0]["id"], &rest[0]["result"]["_meta"][SUBSCRIPTION]), (&json!("s"), &json!("s")));
}

#[tokio::test]
async fn a_client_that_reads_nothing_does_not_keep_a_server_from_stopping() {
    let server = TestServer::start(conformance()).await;
    let stop = CancellationToken::new();
    let (mut input, input_end) = tokio::io::duplex(1 << 16);
    let (_output, output_end) = tokio::io::duplex(16);
    let limits = ServerLimits::default().stream_messages_max(1);
    let receiver = server.receiver().clone();
    let serving = stdio::serve(receiver, local(), BufReader::new(input_end), output_end, limits, stop.clone());
    let serving = tokio::spawn(serving);
    tokio::time::pause();
    for id in 0..5 {
        let request = message(&json!(id), "tools/list", json!({}));
        input.write_all(format!("{request}\n").as_bytes()).await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    stop.cancel();
    in_time("the end of the server", serving).await.unwrap().unwrap();
}
