//! The server as requestor: clients that answer with a task of their own.

use longhaul_testkit::tools::{named, start};
use longhaul_testkit::{ReplyMessages, SessionClient};
use serde_json::{Value, json};

fn with_tasks() -> Value {
    json!({
        "elicitation": {}, "sampling": {},
        "tasks": { "cancel": {}, "requests": { "elicitation": { "create": {} }, "sampling": { "createMessage": {} } } },
    })
}

fn task(status: &str) -> Value {
    json!({
        "taskId": "theirs", "status": status, "createdAt": "2025-11-25T10:30:00Z",
        "lastUpdatedAt": "2025-11-25T10:30:00Z", "ttl": 60_000, "pollInterval": 60_000,
    })
}

async fn make_task(client: &SessionClient, stream: &mut ReplyMessages, method: &str) {
    let question = stream.next_of(method).await;
    assert!(question["params"]["task"]["ttl"].as_u64().is_some(), "{question}");
    client.respond(&question, json!({ "task": task("working") })).await;
}

/// Notifies the server of a change of the task, and answers its requests.
async fn finish(client: &SessionClient, stream: &mut ReplyMessages, status: &str) -> Value {
    client.notify("notifications/tasks/status", task(status)).await;
    let asked = stream.next_of("tasks/get").await;
    assert_eq!(asked["params"]["taskId"], "theirs");
    client.respond(&asked, task(status)).await;
    let wanted = stream.next_of("tasks/result").await;
    assert_eq!(wanted["params"]["taskId"], "theirs");
    wanted
}

#[tokio::test]
async fn a_question_may_be_answered_by_way_of_a_task_of_the_client() {
    let (server, _) = start().await;
    let client = SessionClient::open(&server, with_tasks()).await;
    let mut listening = client.listening().await;
    let id = client.create("greet", json!({})).await;
    make_task(&client, &mut listening, "elicitation/create").await;
    let wanted = finish(&client, &mut listening, "completed").await;
    client.respond(&wanted, json!({ "action": "accept", "content": { "name": "Ada" } })).await;
    let result = client.result("tasks/result", json!({ "taskId": id })).await;
    assert_eq!(result["content"][0]["text"], "Hello, Ada!");
}

#[tokio::test]
async fn an_ordinary_call_waits_for_a_task_of_the_client_on_its_own_stream() {
    let (server, _) = start().await;
    let client = SessionClient::open(&server, with_tasks()).await;
    let mut call = client.send("tools/call", json!({ "name": "ask_model", "arguments": {} })).await;
    make_task(&client, &mut call, "sampling/createMessage").await;
    let wanted = finish(&client, &mut call, "completed").await;
    let said = json!({ "role": "assistant", "model": "m", "content": { "type": "text", "text": "something" } });
    client.respond(&wanted, said).await;
    assert_eq!(call.last().await["result"]["content"][0]["text"], "something");
}

#[tokio::test]
async fn a_client_with_tasks_may_still_answer_at_once() {
    let (server, _) = start().await;
    let client = SessionClient::open(&server, with_tasks()).await;
    let mut call = client.send("tools/call", json!({ "name": "greet", "arguments": {} })).await;
    let question = call.next_of("elicitation/create").await;
    client.respond(&question, named("Ada")).await;
    assert_eq!(call.last().await["result"]["content"][0]["text"], "Hello, Ada!");
}

#[tokio::test]
async fn a_task_of_the_client_that_fails_is_a_refusal() {
    let (server, _) = start().await;
    let client = SessionClient::open(&server, with_tasks()).await;
    let mut call = client.send("tools/call", json!({ "name": "ask_model", "arguments": {} })).await;
    make_task(&client, &mut call, "sampling/createMessage").await;
    let wanted = finish(&client, &mut call, "failed").await;
    client.refuse(&wanted, -32_603, "the model is out").await;
    let error = call.last().await["error"].clone();
    assert_eq!(error["data"]["code"], "NOT_ANSWERED");
    assert!(error["message"].as_str().unwrap().contains("the model is out"));
}

#[tokio::test]
async fn the_clients_task_is_cancelled_with_the_task_that_asked() {
    let (server, _) = start().await;
    let client = SessionClient::open(&server, with_tasks()).await;
    let mut listening = client.listening().await;
    let id = client.create("greet", json!({})).await;
    make_task(&client, &mut listening, "elicitation/create").await;
    client.notify("notifications/tasks/status", task("working")).await;
    let asked = listening.next_of("tasks/get").await;
    client.respond(&asked, task("working")).await;
    client.result("tasks/cancel", json!({ "taskId": id })).await;
    let cancel = listening.next_of("tasks/cancel").await;
    assert_eq!(cancel["params"]["taskId"], "theirs");
    client.respond(&cancel, task("cancelled")).await;
}

#[tokio::test]
async fn a_client_with_a_task_for_a_question_is_not_asked_again() {
    let (server, _) = start().await;
    let client = SessionClient::open(&server, with_tasks()).await;
    let mut listening = client.listening().await;
    let id = client.create("greet", json!({})).await;
    make_task(&client, &mut listening, "elicitation/create").await;
    // The server follows the task when it requests it.
    client.notify("notifications/tasks/status", task("working")).await;
    let asked = listening.next_of("tasks/get").await;
    client.respond(&asked, task("working")).await;
    drop(listening);
    let mut again = client.listening().await;
    client.notify("notifications/tasks/status", task("completed")).await;
    let wanted = loop {
        let message = again.must_next().await;
        match message["method"].as_str().unwrap() {
            "tasks/get" => client.respond(&message, task("completed")).await,
            "tasks/result" => break message,
            "elicitation/create" => panic!("asked again"),
            _ => {}
        }
    };
    client.respond(&wanted, named("Ada")).await;
    let result = client.result("tasks/result", json!({ "taskId": id })).await;
    assert_eq!(result["content"][0]["text"], "Hello, Ada!");
}

#[tokio::test]
async fn a_task_that_the_client_makes_too_late_is_cancelled_too() {
    let (server, _) = start().await;
    let client = SessionClient::open(&server, with_tasks()).await;
    let mut listening = client.listening().await;
    let id = client.create("greet", json!({})).await;
    let question = listening.next_of("elicitation/create").await;
    client.result("tasks/cancel", json!({ "taskId": id })).await;
    client.respond(&question, json!({ "task": task("working") })).await;
    let cancel = listening.next_of("tasks/cancel").await;
    assert_eq!(cancel["params"]["taskId"], "theirs");
    client.respond(&cancel, task("cancelled")).await;
}
