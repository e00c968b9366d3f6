//! What a client can continue after a restart of the server.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use longhaul::{OnCrash, Tool};
use longhaul_store::SystemClock;
use longhaul_store_sqlite::SqliteOptions;
use longhaul_testkit::tools::{Door, accepted_name, greet, open, server};
use longhaul_testkit::{ReplyMessages, SessionClient, TestServer};
use serde_json::{Value, json};

struct Disk(tempfile::TempDir);

impl Disk {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("tasks.db")
    }

    /// A server on the file, with a tool whose questions outlive it.
    async fn start(&self) -> TestServer {
        self.serve(server(&Door::closed())).await
    }

    async fn start_without_tickets(&self) -> TestServer {
        self.serve(server(&Door::closed()).no_tickets()).await
    }

    async fn serve(&self, server: longhaul::Server) -> TestServer {
        let store = longhaul_store_sqlite::open(self.file(), &SqliteOptions::default(), SystemClock).unwrap();
        let patient = Tool::new("patient", greet).on_crash(OnCrash::Resume);
        TestServer::start_on(server.tool(patient), Arc::new(store)).await
    }

    /// Another program's connection, which holds the file until it is rolled back.
    fn lock(&self) -> rusqlite::Connection {
        let other = rusqlite::Connection::open(self.file()).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        other
    }
}

/// A client that waits for the result of a task, and has received a question on the same stream.
struct WaitingClient {
    client: SessionClient,
    id: String,
    /// The ID of its request for the result.
    request: Value,
    waiting: ReplyMessages,
    question: Value,
}

async fn asked(server: &TestServer, tool: &str) -> WaitingClient {
    let client = open(server).await;
    let id = client.create(tool, json!({})).await;
    let message = client.message("tasks/result", json!({ "taskId": id }));
    let mut waiting = client.post(message.to_string()).await;
    let question = waiting.next_of("elicitation/create").await;
    WaitingClient { client, id, request: message["id"].clone(), waiting, question }
}

fn text(response: &Value) -> &Value {
    &response["result"]["content"][0]["text"]
}

#[tokio::test]
async fn the_answer_to_a_question_that_was_asked_before_a_restart_counts() {
    let disk = Disk::new();
    let first = disk.start().await;
    let WaitingClient { client, id, question, .. } = asked(&first, "patient").await;
    first.stop().await;

    let second = disk.start().await;
    // No other session can answer, not even one of the same owner.
    let other = open(&second).await;
    other.respond(&question, accepted_name("Eve")).await;
    assert_eq!(other.get(&id).await["status"], "input_required");
    let client = client.at(&second);
    client.respond(&question, accepted_name("Ada")).await;
    let done = client.send("tasks/result", json!({ "taskId": id })).await.last().await;
    assert_eq!(text(&done), "Hello, Ada!");
    second.stop().await;
}

#[tokio::test]
async fn a_wait_for_a_result_goes_on_after_a_restart() {
    let disk = Disk::new();
    let first = disk.start().await;
    let WaitingClient { client, waiting, request, .. } = asked(&first, "patient").await;
    let event = waiting.last_event.clone().unwrap();
    drop(waiting);
    first.stop().await;

    let second = disk.start().await;
    let client = client.at(&second);
    let mut resumed = client.listen(Some(&event)).await;
    let again = resumed.next_of("elicitation/create").await;
    client.respond(&again, accepted_name("Ada")).await;
    let done = resumed.last().await;
    assert_eq!((text(&done), &done["id"]), (&json!("Hello, Ada!"), &request));
    // A client that resumes again gets it again.
    assert_eq!(text(&client.listen(Some(&event)).await.last().await), "Hello, Ada!");
    second.stop().await;
}

/// A restored session does not know which generation its client spoke.
#[tokio::test]
async fn a_cancellation_after_a_restart_speaks_the_generation_of_its_task() {
    let disk = Disk::new();
    let first = disk.start().await;
    let client = open(&first).await;
    let other = client.create("patient", json!({})).await;
    let lesson = json!({ "name": "patient", "arguments": {}, "_meta": { "task": { "required": true } } });
    let lesson = client.result("tools/call", lesson).await["_meta"]["task"]["id"].take();
    first.stop().await;

    let second = disk.start().await;
    let client = client.at(&second);
    for _ in 0..2 {
        let shown = client.result("tasks/cancel", json!({ "taskId": lesson })).await;
        assert_eq!((&shown["state"], shown.get("status")), (&json!("cancelled"), None), "{shown}");
    }
    assert_eq!(client.result("tasks/cancel", json!({ "taskId": other })).await["status"], "cancelled");
    assert_eq!(client.error("tasks/cancel", json!({ "taskId": other })).await["code"], -32_602);
    second.stop().await;
}

#[tokio::test]
async fn an_ordinary_call_is_reported_lost_after_a_restart() {
    let disk = Disk::new();
    let first = disk.start_without_tickets().await;
    let client = open(&first).await;
    let asked = client.message("tools/call", json!({ "name": "greet", "arguments": {} }));
    let mut call = client.post(asked.to_string()).await;
    call.next_of("elicitation/create").await;
    let event = call.last_event.clone().unwrap();
    drop(call);
    first.stop().await;

    let second = disk.start().await;
    let client = client.at(&second);
    let lost = client.listen(Some(&event)).await.last().await;
    assert_eq!((&lost["id"], &lost["error"]["data"]["code"]), (&asked["id"], &json!("ANSWER_LOST")));
    // The event ID of another owner resumes nothing.
    let other = open(&second).await;
    let mut fresh = other.listen(Some(&event)).await;
    assert!(!fresh.first_event_id().await.contains(event.rsplit('.').next().unwrap()));
    second.stop().await;
}

#[tokio::test]
async fn an_answer_is_acknowledged_when_it_is_stored_and_not_before() {
    let disk = Disk::new();
    let server = disk.start().await;
    let WaitingClient { client, id, question, mut waiting, .. } = asked(&server, "greet").await;

    let other = disk.lock();
    let answers = client.clone();
    let answer = tokio::spawn(async move { answers.respond(&question, accepted_name("Ada")).await });
    for _ in 0..50 {
        client.get(&id).await;
        assert!(!answer.is_finished(), "it is not stored yet");
    }
    other.execute_batch("ROLLBACK").unwrap();
    answer.await.unwrap();
    assert_eq!(text(&waiting.last().await), "Hello, Ada!");
    server.stop().await;
}

#[tokio::test]
async fn an_answer_that_is_slow_to_store_is_refused_for_now_and_stored_later() {
    let disk = Disk::new();
    let first = disk.start().await;
    let before = asked(&first, "patient").await;
    first.stop().await;
    let server = disk.start().await;
    let now = asked(&server, "greet").await;

    let other = disk.lock();
    let back = before.client.at(&server);
    let [late, present] = [(&back, &before.question), (&now.client, &now.question)].map(|(client, question)| async {
        let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": accepted_name("Ada") });
        let mut refused = client.post(answer.to_string()).await;
        assert_eq!(refused.status, 503);
        assert_eq!(refused.must_next().await["error"]["data"]["code"], "NOT_STORED");
    });
    tokio::join!(late, present);
    other.execute_batch("ROLLBACK").unwrap();
    for (client, id) in [(&back, &before.id), (&now.client, &now.id)] {
        let done = client.send("tasks/result", json!({ "taskId": id })).await.last().await;
        assert_eq!(text(&done), "Hello, Ada!");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_question_on_a_broken_stream_is_asked_again_on_another() {
    let (server, _) = longhaul_testkit::tools::start().await;
    let WaitingClient { client, id, question, waiting: first, .. } = asked(&server, "greet").await;
    let mut host = server.client().await;
    let before = host.metric("longhaul_session_jobs").await;
    let second = client.message("tasks/result", json!({ "taskId": id }));
    let second = tokio::spawn({
        let client = client.clone();
        async move { client.post(second.to_string()).await.next_of("elicitation/create").await }
    });
    while host.metric("longhaul_session_jobs").await <= before {}
    drop(first);
    let again = second.await.unwrap();
    assert_ne!(question["id"], again["id"]);
    client.respond(&again, accepted_name("Ada")).await;
    client.until(&id, "completed").await;
}

#[tokio::test]
async fn a_call_that_names_its_task_is_answered_after_a_restart() {
    let disk = Disk::new();
    let first = disk.start().await;
    let client = open(&first).await;
    let meta = json!({ "modelcontextprotocol.io/task": { "taskId": "mine" } });
    let mut call = client.send("tools/call", json!({ "name": "patient", "arguments": {}, "_meta": meta })).await;
    call.next_of("notifications/tasks/created").await;
    let question = call.next_of("elicitation/create").await;
    let last = call.last_event.clone().unwrap();
    first.stop().await;
    let second = disk.start().await;
    let client = client.at(&second);
    let mut resumed = client.listen(Some(&last)).await;
    client.respond(&question, accepted_name("Ada")).await;
    assert_eq!(text(&resumed.last().await), "Hello, Ada!");
}

#[tokio::test]
async fn a_call_without_tasks_is_answered_after_a_restart() {
    let disk = Disk::new();
    let start = async || {
        let store = longhaul_store_sqlite::open(disk.file(), &SqliteOptions::default(), SystemClock).unwrap();
        let patient = Tool::new("patient", greet).on_crash(OnCrash::Resume);
        TestServer::start_on(
            longhaul::Server::new("tickets").tool(patient).patience(Duration::from_secs(45)),
            Arc::new(store),
        )
        .await
    };
    let first = start().await;
    let client = SessionClient::new(&first).initialize("2025-06-18", json!({ "elicitation": {} })).await;
    let mut call = client.send("tools/call", json!({ "name": "patient", "arguments": {} })).await;
    let question = call.next_of("elicitation/create").await;
    assert_eq!(question["params"].get("_meta"), None, "the client knows no tasks");
    let last = call.last_event.clone().unwrap();
    drop(call);
    first.stop().await;
    let second = start().await;
    let client = client.at(&second);
    let mut resumed = client.listen(Some(&last)).await;
    client.respond(&question, accepted_name("Ada")).await;
    assert_eq!(text(&resumed.last().await), "Hello, Ada!");
}

#[tokio::test]
async fn a_creation_that_is_cancelled_before_it_is_stored_leaves_a_cancelled_task() {
    let disk = Disk::new();
    let server = disk.start().await;
    let client = open(&server).await;
    let meta = json!({ "modelcontextprotocol.io/task": { "taskId": "mine" } });
    let message = client.message("tools/call", json!({ "name": "wait", "arguments": {}, "_meta": meta }));
    let mut host = server.client().await;
    let before = host.metric("longhaul_session_jobs").await;
    let other = disk.lock();
    let creation = tokio::spawn({
        let (client, body) = (client.clone(), message.to_string());
        async move { client.post(body).await.rest().await }
    });
    while host.metric("longhaul_session_jobs").await <= before {}
    client.notify("notifications/cancelled", json!({ "requestId": message["id"] })).await;
    other.execute_batch("ROLLBACK").unwrap();
    assert!(creation.await.unwrap().iter().all(|message| message.get("result").is_none()), "no answer");
    let about = json!({ "taskId": "mine", "_meta": { "modelcontextprotocol.io/related-task": { "taskId": "mine" } } });
    longhaul_testkit::until("its cancellation", async || {
        client.response("tasks/get", about.clone()).await["result"]["status"] == "cancelled"
    })
    .await;
    server.stop().await;
}
