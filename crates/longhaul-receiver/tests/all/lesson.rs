//! The dialect of the lesson, in a session.

use longhaul_testkit::tools::{accepted_name, start};
use longhaul_testkit::{LATEST, SessionClient, TestServer, until};
use serde_json::{Value, json};

async fn open(server: &TestServer) -> SessionClient {
    let capabilities = json!({ "elicitation": {}, "sampling": {} });
    SessionClient::new(server).with_token("ada").initialize(LATEST, capabilities).await
}

async fn create(client: &SessionClient, tool: &str, task: Value) -> String {
    let params = json!({ "name": tool, "arguments": { "text": "hello" }, "_meta": { "task": task } });
    let made = client.result("tools/call", params).await;
    let task = &made["_meta"]["task"];
    assert_eq!(task["state"], "working", "{made}");
    assert!(task["ttl"].is_u64(), "{made}");
    task["id"].as_str().unwrap().to_owned()
}

async fn state(client: &SessionClient, id: &str) -> Value {
    client.result("tasks/status", json!({ "taskId": id })).await["state"].take()
}

#[tokio::test]
async fn a_report_is_started_polled_and_fetched() {
    let (server, door) = start().await;
    let client = open(&server).await;
    let id = create(&client, "steps", json!({ "required": true })).await;
    let mut shown = Value::Null;
    until("progress", async || {
        shown = client.result("tasks/status", json!({ "taskId": id })).await;
        shown["progress"].is_f64()
    })
    .await;
    assert_eq!((&shown["state"], &shown["message"]), (&json!("working"), &json!("step 1")));
    door.open(3);
    assert_eq!(client.result_text(&id).await, "three steps", "the request for the result waits");
    assert_eq!(state(&client, &id).await, "completed");
    assert_eq!(client.result("tasks/list", json!({})).await["tasks"][0]["taskId"], json!(id));
}

#[tokio::test]
async fn a_cancellation_can_be_repeated() {
    let (server, _door) = start().await;
    let client = open(&server).await;
    let id = create(&client, "wait", json!({ "optional": true })).await;
    for _ in 0..2 {
        assert_eq!(client.result("tasks/cancel", json!({ "taskId": id })).await["state"], "cancelled");
    }
    let done = create(&client, "echo", json!({ "required": true })).await;
    until("its end", async || state(&client, &done).await == "completed").await;
    assert_eq!(client.result("tasks/cancel", json!({ "taskId": done })).await["state"], "completed");
}

#[tokio::test]
async fn the_answers_to_repeated_cancellations_are_equal_with_progress() {
    let (server, _door) = start().await;
    let client = open(&server).await;
    let id = create(&client, "steps", json!({ "required": true })).await;
    let named = json!({ "taskId": id });
    until("progress", async || client.result("tasks/status", named.clone()).await["progress"].is_f64()).await;
    let first = client.result("tasks/cancel", named.clone()).await;
    assert!(first["progress"].is_f64(), "{first}");
    assert_eq!(client.result("tasks/cancel", named).await, first);
}

/// That generation has no cancellation of its own.
#[tokio::test]
async fn a_cancellation_can_be_repeated_after_a_request_of_sep_1686() {
    let (server, _door) = start().await;
    let client = open(&server).await;
    let id = create(&client, "wait", json!({ "required": true })).await;
    let named = json!({ "modelcontextprotocol.io/related-task": { "taskId": id } });
    client.result("tasks/get", json!({ "taskId": id, "_meta": named })).await;
    for _ in 0..2 {
        assert_eq!(client.result("tasks/cancel", json!({ "taskId": id })).await["state"], "cancelled");
    }
    // The request itself says that it speaks SEP-1686.
    let refused = client.error("tasks/cancel", json!({ "taskId": id, "_meta": named })).await;
    assert_eq!(refused["code"], -32_602);
}

#[tokio::test]
async fn the_status_of_a_failed_tool_says_why() {
    let (server, _door) = start().await;
    let client = open(&server).await;
    let id = create(&client, "fail", json!({ "required": true })).await;
    until("its end", async || state(&client, &id).await == "failed").await;
    let shown = client.result("tasks/status", json!({ "taskId": id })).await;
    assert_eq!((&shown["message"], &shown["error"]), (&json!("hello"), &json!("hello")), "{shown}");
}

#[tokio::test]
async fn states_and_progress_are_pushed() {
    let (server, door) = start().await;
    let client = open(&server).await;
    let mut events = client.listening().await;
    let id = create(&client, "steps", json!({ "required": true })).await;
    for step in 1..=3 {
        let mut told = events.next_of("notifications/tasks/updated").await;
        while told["params"]["progress"] != f64::from(step) / 3.0 {
            told = events.next_of("notifications/tasks/updated").await;
        }
        assert_eq!((&told["params"]["taskId"], &told["params"]["state"]), (&json!(id), &json!("working")));
        door.open(1);
    }
    let mut told = json!({});
    while told["params"]["state"] != "completed" {
        told = events.next_of("notifications/tasks/updated").await;
    }
}

#[tokio::test]
async fn a_task_that_samples_works_and_one_that_asks_needs_input() {
    let (server, _door) = start().await;
    let client = open(&server).await;
    let mut events = client.listening().await;
    let id = create(&client, "ask_model", json!({ "required": true })).await;
    state(&client, &id).await;
    let question = events.next_of("sampling/createMessage").await;
    assert_eq!(state(&client, &id).await, "working");
    client
        .respond(&question, json!({ "role": "assistant", "content": { "type": "text", "text": "hm" }, "model": "m" }))
        .await;
    assert_eq!(client.result_text(&id).await, "hm");
    let id = create(&client, "greet", json!({ "required": true })).await;
    state(&client, &id).await;
    let question = events.next_of("elicitation/create").await;
    assert_eq!(state(&client, &id).await, "input_required");
    client.respond(&question, accepted_name("Ada")).await;
    assert_eq!(client.result_text(&id).await, "Hello, Ada!");
}

#[tokio::test]
async fn a_tool_says_in_its_annotations_whether_it_runs_as_a_task() {
    let (server, _door) = start().await;
    let client = open(&server).await;
    let tools = client.result("tools/list", json!({})).await;
    let support = |name: &str| {
        let tool = tools["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap();
        tool["annotations"]["taskSupport"].clone()
    };
    assert_eq!([support("echo"), support("only_task"), support("never_task")], ["optional", "required", "forbidden"]);
    // An ordinary call of a tool that never runs as a task, whatever is asked for.
    let params = json!({ "name": "never_task", "arguments": {}, "_meta": { "task": { "required": true } } });
    assert_eq!(client.result("tools/call", params).await["content"][0]["text"], "no task");
}

#[tokio::test]
async fn a_flag_that_is_null_counts_as_absent() {
    let (server, _door) = start().await;
    let client = open(&server).await;
    create(&client, "echo", json!({ "required": true, "optional": null })).await;
    create(&client, "echo", json!({ "required": null, "optional": true })).await;
    let call = json!({ "name": "echo", "arguments": { "text": "x" }, "_meta": { "task": { "required": null } } });
    assert_eq!(client.result("tools/call", call).await["content"][0]["text"], "x", "an ordinary call");
}

#[tokio::test]
async fn a_malformed_request_for_a_task_is_refused_where_a_task_is_possible() {
    let (server, _door) = start().await;
    let client = open(&server).await;
    for (task, wrong) in
        [(json!({ "required": "yes" }), "required"), (json!({ "required": true, "optional": 1 }), "optional")]
    {
        let call = |tool| json!({ "name": tool, "arguments": { "text": "x" }, "_meta": { "task": task } });
        let refused = client.error("tools/call", call("echo")).await;
        let message = format!("`_meta.task` is not valid: `{wrong}` must be true or false.");
        assert_eq!(refused, json!({ "code": -32_602, "message": message }));
        assert_eq!(client.result("tools/call", call("never_task")).await["content"][0]["text"], "no task");
    }
    // The key has no prefix: it may be another program's.
    for task in [json!(null), json!({}), json!("other"), json!({ "required": false })] {
        let params = json!({ "name": "echo", "arguments": { "text": "x" }, "_meta": { "task": task } });
        assert_eq!(client.result("tools/call", params).await["content"][0]["text"], "x", "an ordinary call");
    }
}
