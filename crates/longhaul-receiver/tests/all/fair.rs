//! What one owner uses does not harm another.

use longhaul::{RateLimits, ServerLimits, SessionLimits};
use longhaul_testkit::tools::{Door, accepted_name, forms, server};
use longhaul_testkit::{LATEST, ReplyMessages, SessionClient, TestServer, in_time, initialize_params};
use serde_json::json;

async fn start(sessions: SessionLimits) -> TestServer {
    TestServer::start(server(&Door::closed()).limits(ServerLimits::default().session(sessions))).await
}

async fn try_open(server: &TestServer, owner: &str) -> Result<SessionClient, ReplyMessages> {
    let mut client = SessionClient::new(server).with_token(owner);
    let reply = client.send("initialize", initialize_params(LATEST, forms())).await;
    let Some(session) = reply.headers.get("mcp-session-id") else { return Err(reply) };
    client.session = Some(session.to_str().unwrap().to_owned());
    Ok(client)
}

async fn open(server: &TestServer, owner: &str) -> SessionClient {
    SessionClient::new(server).with_token(owner).initialize(LATEST, forms()).await
}

/// Begins a wait for a task's result and disconnects. Returns the event ID that resumes the wait.
async fn abandon_wait(client: &SessionClient) -> String {
    let id = client.create("greet", json!({})).await;
    let mut wait = client.send("tasks/result", json!({ "taskId": id })).await;
    wait.next_of("elicitation/create").await;
    wait.last_event.clone().unwrap()
}

#[tokio::test]
async fn sessions_of_some_owners_leave_room_for_another() {
    let server = start(SessionLimits::default().sessions_max(16)).await;
    let mut streams = Vec::new();
    for owner in ["ada", "bob"] {
        while let Ok(client) = try_open(&server, owner).await {
            streams.push(client.listening().await);
            assert!(streams.len() < 16, "{owner} has taken every session");
        }
    }
    assert!(streams.len() > 8, "only {} sessions", streams.len());
    let carol = open(&server, "carol").await;
    assert_eq!(carol.result("ping", json!({})).await, json!({}));
}

#[tokio::test]
async fn a_session_with_an_abandoned_wait_makes_way_and_is_continued_later() {
    let server = start(SessionLimits::default().sessions_max(4)).await;
    let first = open(&server, "ada").await;
    let event = abandon_wait(&first).await;
    for _ in 0..8 {
        abandon_wait(&open(&server, "ada").await).await;
    }
    let mut resumed = first.listen(Some(&event)).await;
    let question = resumed.next_of("elicitation/create").await;
    first.respond(&question, accepted_name("Ada")).await;
    assert_eq!(resumed.last().await["result"]["content"][0]["text"], "Hello, Ada!");
}

#[tokio::test]
async fn an_abandoned_wait_keeps_no_copy_of_the_result() {
    let server = start(SessionLimits::default()).await;
    let client = open(&server, "ada").await;
    let id = client.create("greet", json!({})).await;
    let mut events = Vec::new();
    let mut question = json!(null);
    for _ in 0..8 {
        let mut wait = client.send("tasks/result", json!({ "taskId": id })).await;
        question = wait.next_of("elicitation/create").await;
        events.push(wait.last_event.clone().unwrap());
    }
    let name = "x".repeat(100_000);
    client.respond(&question, accepted_name(&name)).await;
    client.until(&id, "completed").await;
    let mut metrics = server.client().await;
    let kept = metrics.metric_of("longhaul_budget_used", "kept_bytes").await.expect("a budget");
    assert!(kept > 0.0 && kept < 100_000.0, "{kept} bytes are kept");
    for event in events {
        let answer = client.listen(Some(&event)).await.last().await;
        assert_eq!(answer["result"]["content"][0]["text"], format!("Hello, {name}!"));
    }
}

#[tokio::test]
async fn misses_do_not_refuse_tasks_that_exist() {
    let limits = RateLimits::off().failed_lookups_per_second(1).failed_lookups_burst(3);
    let server = TestServer::start(server(&Door::closed()).rate_limits(limits)).await;
    let client = SessionClient::open(&server, forms()).await;
    let id = client.create("wait", json!({})).await;
    in_time("a refused miss", async {
        while client.error("tasks/get", json!({ "taskId": "none" })).await["data"]["code"] != "TOO_MANY_FAILED_LOOKUPS"
        {
        }
    })
    .await;
    for _ in 0..300 {
        assert_eq!(client.get(&id).await["status"], "working");
    }
}
