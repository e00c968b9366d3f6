//! The server as requestor: clients that answer with a task of their own.

use longhaul_testkit::tools::{accepted_name, open_session_with};
use longhaul_testkit::{ReplyMessages, SessionClient, TestServer};
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

/// Answers the next question of the server with a new task of the client.
async fn make_task(client: &SessionClient, stream: &mut ReplyMessages, method: &str) {
    let question = stream.next_of(method).await;
    assert!(question["params"]["task"]["ttl"].as_u64().is_some(), "{question}");
    client.respond(&question, json!({ "task": task("working") })).await;
}

/// A task of the server whose question became a task of the client, and the stream on which the client hears of it.
async fn greeting_by_task() -> (TestServer, SessionClient, ReplyMessages, String) {
    let (server, _, client) = open_session_with(with_tasks()).await;
    let mut listening = client.listening().await;
    let id = client.create("greet", json!({})).await;
    make_task(&client, &mut listening, "elicitation/create").await;
    (server, client, listening, id)
}

/// Notifies the server that the client's task has changed, and answers the poll that follows.
async fn say_status(client: &SessionClient, stream: &mut ReplyMessages, status: &str) {
    client.notify("notifications/tasks/status", task(status)).await;
    let asked = stream.next_of("tasks/get").await;
    assert_eq!(asked["params"]["taskId"], "theirs");
    client.respond(&asked, task(status)).await;
}

/// Ends the client's task, and returns the server's request for its result.
async fn finish(client: &SessionClient, stream: &mut ReplyMessages, status: &str) -> Value {
    say_status(client, stream, status).await;
    let wanted = stream.next_of("tasks/result").await;
    assert_eq!(wanted["params"]["taskId"], "theirs");
    wanted
}

#[tokio::test]
async fn a_question_may_be_answered_by_way_of_a_task_of_the_client() {
    let (_server, client, mut listening, id) = greeting_by_task().await;
    let wanted = finish(&client, &mut listening, "completed").await;
    client.respond(&wanted, json!({ "action": "accept", "content": { "name": "Ada" } })).await;
    assert_eq!(client.result_text(&id).await, "Hello, Ada!");
}

#[tokio::test]
async fn an_ordinary_call_waits_for_a_task_of_the_client_on_its_own_stream() {
    let (_server, _, client) = open_session_with(with_tasks()).await;
    let mut call = client.send("tools/call", json!({ "name": "ask_model", "arguments": {} })).await;
    make_task(&client, &mut call, "sampling/createMessage").await;
    let wanted = finish(&client, &mut call, "completed").await;
    let said = json!({ "role": "assistant", "model": "m", "content": { "type": "text", "text": "something" } });
    client.respond(&wanted, said).await;
    assert_eq!(call.last().await["result"]["content"][0]["text"], "something");
}

#[tokio::test]
async fn a_client_with_tasks_may_still_answer_at_once() {
    let (_server, _, client) = open_session_with(with_tasks()).await;
    let (mut call, question) = client.call_until_form("greet").await;
    client.respond(&question, accepted_name("Ada")).await;
    assert_eq!(call.last().await["result"]["content"][0]["text"], "Hello, Ada!");
}

#[tokio::test]
async fn a_task_of_the_client_that_fails_is_a_refusal() {
    let (_server, _, client) = open_session_with(with_tasks()).await;
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
    let (_server, client, mut listening, id) = greeting_by_task().await;
    say_status(&client, &mut listening, "working").await;
    client.result("tasks/cancel", json!({ "taskId": id })).await;
    let cancel = listening.next_of("tasks/cancel").await;
    assert_eq!(cancel["params"]["taskId"], "theirs");
    client.respond(&cancel, task("cancelled")).await;
}

#[tokio::test]
async fn a_client_with_a_task_for_a_question_is_not_asked_again() {
    let (_server, client, mut listening, id) = greeting_by_task().await;
    // The server has registered the client's task once it polls it.
    say_status(&client, &mut listening, "working").await;
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
    client.respond(&wanted, accepted_name("Ada")).await;
    assert_eq!(client.result_text(&id).await, "Hello, Ada!");
}

#[tokio::test]
async fn a_task_that_the_client_makes_too_late_is_cancelled_too() {
    let (_server, _, client) = open_session_with(with_tasks()).await;
    let (mut listening, id, question) = client.create_until_form("greet").await;
    client.result("tasks/cancel", json!({ "taskId": id })).await;
    client.respond(&question, json!({ "task": task("working") })).await;
    let cancel = listening.next_of("tasks/cancel").await;
    assert_eq!(cancel["params"]["taskId"], "theirs");
    client.respond(&cancel, task("cancelled")).await;
}

#[tokio::test]
async fn a_client_that_cannot_make_a_task_is_asked_plainly() {
    let (_server, _, client) = open_session_with(with_tasks()).await;
    let (mut call, question) = client.call_until_form("greet").await;
    assert!(question["params"].get("task").is_some(), "{question}");
    client.refuse(&question, -32_602, "Invalid task creation result").await;
    let plain = call.next_of("elicitation/create").await;
    assert!(plain["params"].get("task").is_none(), "{plain}");
    client.respond(&plain, accepted_name("Ada")).await;
    assert_eq!(call.last().await["result"]["content"][0]["text"], "Hello, Ada!");
    // From then on, the first request for a question does not ask for a task.
    let (_, question) = client.call_until_form("greet").await;
    assert!(question["params"].get("task").is_none(), "{question}");
}

#[tokio::test]
async fn a_user_who_refuses_is_not_asked_twice() {
    let (_server, _, client) = open_session_with(with_tasks()).await;
    let mut call = client.send("tools/call", json!({ "name": "ask_model", "arguments": {} })).await;
    let question = call.next_of("sampling/createMessage").await;
    client.refuse(&question, -1, "User rejected sampling request").await;
    assert_eq!(call.last().await["error"]["data"]["code"], "NOT_ANSWERED");
}
