//! A call that is repeated under its idempotency key gets the task that it has created, in every generation.

use std::path::Path;
use std::sync::Arc;

use longhaul::{Ctx, NoArgs, Retention, Tool};
use longhaul_store::SystemClock;
use longhaul_store_sqlite::SqliteOptions;
use longhaul_testkit::tools::{Door, accepted_name, forms, open, server, start};
use longhaul_testkit::{SessionClient, StatelessClient, TestServer, in_time, until};
use serde_json::{Value, json};

const META: &str = "longhaul/idempotency-key";

/// A client of one generation.
enum Client {
    Ext2026(StatelessClient),
    Core2025(SessionClient),
}

impl Client {
    async fn of_each(server: &TestServer, token: &str) -> [Self; 2] {
        let session = SessionClient::new(server).with_token(token).initialize("2025-11-25", forms()).await;
        [Self::Ext2026(server.client().await.with_token(token)), Self::Core2025(session)]
    }

    /// The response to a call that asks for a task.
    async fn call(&mut self, mut params: Value, headers: &[(&str, &str)]) -> Value {
        match self {
            Self::Ext2026(client) => {
                let (message, mut all) = client.message("tools/call", params);
                all.extend(headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
                client.exchange(message.to_string(), &all).await.unwrap().json()
            }
            Self::Core2025(client) => {
                if params.get("task").is_none() {
                    params["task"] = json!({});
                }
                let message = client.message("tools/call", params);
                client.http("POST", headers, message.to_string()).await.last().await
            }
        }
    }

    async fn keyed(&mut self, key: &str, tool: &str, arguments: Value) -> Value {
        self.call(json!({ "name": tool, "arguments": arguments, "_meta": { META: key } }), &[]).await
    }
}

/// The ID of the task in the response to a creation.
fn task(response: &Value) -> String {
    let result = &response["result"];
    let id = result["taskId"].as_str().or(result["task"]["taskId"].as_str());
    id.unwrap_or_else(|| panic!("no task: {response}")).to_owned()
}

fn status(response: &Value) -> &str {
    let result = &response["result"];
    result["status"].as_str().or(result["task"]["status"].as_str()).unwrap_or_default()
}

#[track_caller]
fn assert_refused(response: &Value, code: &str) {
    let error = &response["error"];
    assert_eq!((&error["code"], &error["data"]["code"]), (&json!(-32_602), &json!(code)), "{response}");
}

#[tokio::test]
async fn a_repeated_call_gets_the_same_task_however_it_sends_its_key() {
    let (server, _door) = start().await;
    let echo = |meta: Value| json!({ "name": "echo", "arguments": { "text": "x" }, "_meta": meta });
    for mut client in Client::of_each(&server, "ada").await {
        let key = if matches!(client, Client::Ext2026(_)) { "new" } else { "old" };
        let first = task(&client.call(echo(json!({ META: key })), &[]).await);
        let quoted = format!("\"{key}\"");
        for (meta, header) in [
            (json!({ META: key }), None),
            (json!({}), Some(key)),
            (json!({}), Some(quoted.as_str())),
            (json!({ META: key }), Some(key)),
        ] {
            let headers: Vec<_> = header.map(|value| ("idempotency-key", value)).into_iter().collect();
            assert_eq!(task(&client.call(echo(meta), &headers).await), first);
        }
        let without = client.call(json!({ "name": "echo", "arguments": { "text": "x" } }), &[]).await;
        assert_ne!(task(&without), first);
    }
}

#[tokio::test]
async fn a_key_means_the_same_task_in_every_generation() {
    let (server, _door) = start().await;
    let mut ids = Vec::new();
    for mut client in Client::of_each(&server, "ada").await {
        ids.push(task(&client.keyed("k", "echo", json!({ "text": "x" })).await));
    }
    assert_eq!(ids[0], ids[1]);
    for mut client in Client::of_each(&server, "bob").await {
        ids.push(task(&client.keyed("k", "echo", json!({ "text": "y" })).await));
    }
    assert_eq!(ids[2], ids[3]);
    assert_ne!(ids[0], ids[2], "another owner has keys of its own");
}

#[tokio::test]
async fn a_repeated_call_shows_the_task_as_it_is_now() {
    let (server, door) = start().await;
    for mut client in Client::of_each(&server, "ada").await {
        let key = if matches!(client, Client::Ext2026(_)) { "new" } else { "old" };
        let first = client.keyed(key, "wait", json!({})).await;
        assert_eq!(status(&client.keyed(key, "wait", json!({})).await), "working");
        door.open(1);
        server.client().await.with_token("ada").settled(&task(&first)).await;
        let again = client.keyed(key, "wait", json!({})).await;
        assert_eq!((task(&again), status(&again)), (task(&first), "completed"));
    }
}

#[tokio::test]
async fn another_call_under_a_used_key_is_refused_and_creates_nothing() {
    let (server, _door) = start().await;
    for mut client in Client::of_each(&server, "ada").await {
        let first = task(&client.keyed("k", "echo", json!({ "text": "x" })).await);
        assert_refused(&client.keyed("k", "echo", json!({ "text": "y" })).await, "IDEMPOTENCY_KEY_USED");
        assert_refused(&client.keyed("k", "fail", json!({ "text": "x" })).await, "IDEMPOTENCY_KEY_USED");
        if matches!(client, Client::Core2025(_)) {
            let kept = json!({ "name": "echo", "arguments": { "text": "x" }, "task": { "ttl": 60_000 }, "_meta": { META: "k" } });
            assert_refused(&client.call(kept, &[]).await, "IDEMPOTENCY_KEY_USED");
        }
        assert_eq!(task(&client.keyed("k", "echo", json!({ "text": "x" })).await), first);
    }
}

#[tokio::test]
async fn a_key_has_at_most_255_bytes_and_no_control_characters() {
    let (server, _door) = start().await;
    let echo = |key: Value| json!({ "name": "echo", "arguments": { "text": "x" }, "_meta": { META: key } });
    for mut client in Client::of_each(&server, "ada").await {
        task(&client.call(echo(json!("x".repeat(255))), &[]).await);
        task(&client.call(echo(json!("é".repeat(127))), &[]).await);
        for wrong in [json!("x".repeat(256)), json!("é".repeat(128)), json!(""), json!("a\nb"), json!(7), json!(["k"])]
        {
            assert_refused(&client.call(echo(wrong), &[]).await, "BAD_IDEMPOTENCY_KEY");
        }
        task(&client.call(echo(Value::Null), &[]).await);
        let long = "x".repeat(256);
        for header in [&*long, "\"a", "\"a\"b\"", "\"a\\n\"", "\"\"", "\u{7f}"] {
            let headers = [("idempotency-key", header)];
            let call = json!({ "name": "echo", "arguments": { "text": "x" } });
            assert_refused(&client.call(call, &headers).await, "BAD_IDEMPOTENCY_KEY");
        }
        let both = client.call(echo(json!("one")), &[("idempotency-key", "other")]).await;
        assert_refused(&both, "BAD_IDEMPOTENCY_KEY");
        let twice = [("idempotency-key", "one"), ("idempotency-key", "one")];
        assert_refused(&client.call(echo(json!("one")), &twice).await, "BAD_IDEMPOTENCY_KEY");
    }
}

#[tokio::test]
async fn a_call_that_becomes_no_task_ignores_its_key() {
    let server = TestServer::start(server(&Door::closed()).no_tickets()).await;
    let client = SessionClient::new(&server).with_token("ada").initialize("2025-11-25", json!({})).await;
    for (text, key) in [("x", json!("k")), ("y", json!("k")), ("z", json!(""))] {
        let params = json!({ "name": "echo", "arguments": { "text": text }, "_meta": { META: key } });
        assert_eq!(client.result("tools/call", params).await["content"][0]["text"], text);
    }
    let mut anonymous = server.client().await;
    anonymous.capabilities = json!({});
    let params = json!({ "name": "echo", "arguments": { "text": "x" }, "_meta": { META: "k" } });
    assert_eq!(anonymous.send("tools/call", params).await.json()["result"]["content"][0]["text"], "x");
}

#[tokio::test]
async fn a_call_of_a_client_without_tasks_keeps_its_key() {
    let (server, _door) = start().await;
    let client = SessionClient::new(&server).with_token("ada").initialize("2025-06-18", json!({})).await;
    let call = |text: &str| json!({ "name": "echo", "arguments": { "text": text }, "_meta": { META: "k" } });
    let first = client.result("tools/call", call("x")).await;
    assert_eq!(client.result("tools/call", call("x")).await, first);
    assert_eq!(client.error("tools/call", call("y")).await["data"]["code"], "IDEMPOTENCY_KEY_USED");
    let listed = client.call("task_list", json!({})).await;
    assert_eq!(listed["_meta"]["longhaul/task"]["tasks"].as_array().unwrap().len(), 1, "{listed}");
    // A repeated call runs only if it is stored.
    let mut repeated = call("x");
    repeated["_meta"]["longhaul/repeated"] = json!(true);
    assert_eq!(client.result("tools/call", repeated.clone()).await, first);
    let without = TestServer::start(longhaul_testkit::tools::server(&Door::closed()).no_tickets()).await;
    let client = SessionClient::new(&without).with_token("ada").initialize("2025-06-18", json!({})).await;
    assert_eq!(client.error("tools/call", repeated).await["data"]["code"], "ANSWER_LOST");
    let mut anonymous = server.client().await;
    anonymous.capabilities = json!({});
    let refused = anonymous.send("tools/call", call("x")).await.json();
    assert_eq!(refused["error"]["data"]["code"], "IDEMPOTENCY_KEY_NEEDS_IDENTITY", "{refused}");
}

/// All of them are one owner: a guessed key must not lead to the task of another caller.
#[tokio::test]
async fn a_key_of_an_anonymous_caller_belongs_to_its_session() {
    let (server, _door) = start().await;
    let mut clients = Vec::new();
    for _ in 0..2 {
        clients.push(Client::Core2025(open(&server).await));
    }
    let mut ids = Vec::new();
    for client in &mut clients {
        let first = task(&client.keyed("k", "echo", json!({ "text": "x" })).await);
        assert_eq!(task(&client.keyed("k", "echo", json!({ "text": "x" })).await), first);
        ids.push(first);
    }
    assert_ne!(ids[0], ids[1]);
    let mut stateless = Client::Ext2026(server.client().await);
    let refused = stateless.keyed("k", "echo", json!({ "text": "x" })).await;
    assert_refused(&refused, "IDEMPOTENCY_KEY_NEEDS_IDENTITY");
    let refused = stateless.call(json!({ "name": "only_task", "arguments": {} }), &[("idempotency-key", "k")]).await;
    assert_refused(&refused, "IDEMPOTENCY_KEY_NEEDS_IDENTITY");
}

async fn on_file(file: &Path) -> TestServer {
    let store = longhaul_store_sqlite::open(file, &SqliteOptions::default(), SystemClock).unwrap();
    TestServer::start_on(server(&Door::closed()), Arc::new(store)).await
}

#[tokio::test]
async fn a_key_is_known_after_a_restart_also_that_of_an_anonymous_session() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tasks.db");
    let first = on_file(&file).await;
    let session = open(&first).await;
    let anonymous = task(&Client::Core2025(session.clone()).keyed("k", "echo", json!({ "text": "x" })).await);
    let mut known = Client::Ext2026(first.client().await.with_token("ada"));
    let of_ada = task(&known.keyed("k", "echo", json!({ "text": "x" })).await);
    first.stop().await;
    let second = on_file(&file).await;
    let mut session = Client::Core2025(session.at(&second));
    assert_eq!(task(&session.keyed("k", "echo", json!({ "text": "x" })).await), anonymous);
    for mut client in Client::of_each(&second, "ada").await {
        assert_eq!(task(&client.keyed("k", "echo", json!({ "text": "x" })).await), of_ada);
    }
    second.stop().await;
}

#[tokio::test]
async fn a_key_is_free_again_when_its_task_is_no_longer_kept() {
    let fleeting =
        Tool::new("fleeting", |_: Ctx, _: NoArgs| async { Ok("gone") }).retention(Retention::FromCreation(1));
    let server = TestServer::start(longhaul::Server::new("test").tool(fleeting)).await;
    for mut client in Client::of_each(&server, "ada").await {
        let first = task(&client.keyed("k", "fleeting", json!({})).await);
        let mut reader = server.client().await.with_token("ada");
        in_time("the end of its retention", async { while reader.get(&first).await.is_ok() {} }).await;
        assert_ne!(task(&client.keyed("k", "fleeting", json!({})).await), first);
    }
}

#[tokio::test]
async fn a_tool_that_asks_first_asks_no_more_when_its_task_exists() {
    let (server, _door) = start().await;
    let mut client = Client::Ext2026(server.client().await.with_token("ada"));
    let asked = client.keyed("k", "ask_first", json!({})).await;
    let round = |name: &str| {
        let state = asked["result"]["requestState"].clone();
        let answers = json!({ "name": accepted_name(name) });
        json!({ "name": "ask_first", "arguments": {}, "requestState": state, "inputResponses": answers, "_meta": { META: "k" } })
    };
    let first = task(&client.call(round("Ada"), &[]).await);
    assert_eq!(task(&client.call(round("Ada"), &[]).await), first, "the last round again");
    assert_eq!(task(&client.call(round("Eve"), &[]).await), first, "the first answers count");
    assert_eq!(task(&client.keyed("k", "ask_first", json!({})).await), first, "the first round again");
    let ended = server.client().await.with_token("ada").settled(&first).await;
    assert_eq!(ended.result_text(), "Hello, Ada, from a task!");
    // A client that may not answer questions gets the task, too.
    let session = SessionClient::new(&server).with_token("ada").initialize("2025-11-25", json!({})).await;
    assert_eq!(task(&Client::Core2025(session).keyed("k", "ask_first", json!({})).await), first);
}

/// Both were asked before there was a task.
#[tokio::test]
async fn of_two_conversations_under_one_key_the_first_to_end_makes_the_task() {
    let (server, _door) = start().await;
    let mut client = Client::Ext2026(server.client().await.with_token("ada"));
    let mut rounds = Vec::new();
    for name in ["Ada", "Eve"] {
        let asked = client.keyed("k", "ask_first", json!({})).await;
        let state = asked["result"]["requestState"].clone();
        let answers = json!({ "name": accepted_name(name) });
        rounds.push(
            json!({ "name": "ask_first", "arguments": {}, "requestState": state, "inputResponses": answers, "_meta": { META: "k" } }),
        );
    }
    let mut ids = Vec::new();
    for round in rounds.iter().chain(&rounds) {
        ids.push(task(&client.call(round.clone(), &[]).await));
    }
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
}

#[tokio::test]
async fn a_session_that_repeats_a_creation_hears_of_the_task() {
    let (server, door) = start().await;
    let mut maker = Client::Ext2026(server.client().await.with_token("ada"));
    let id = task(&maker.keyed("k", "wait", json!({})).await);
    let session = SessionClient::new(&server).with_token("ada").initialize("2025-11-25", forms()).await;
    let mut listening = session.listening().await;
    let mut client = Client::Core2025(session);
    assert_eq!(task(&client.keyed("k", "wait", json!({})).await), id);
    door.open(1);
    let ended = listening.next_status("completed").await;
    assert_eq!(ended["params"]["taskId"], id);
}

#[tokio::test]
async fn many_calls_at_once_under_one_key_make_one_task() {
    let (server, door) = start().await;
    let mut calls = Vec::new();
    for _ in 0..20 {
        for mut client in Client::of_each(&server, "ada").await {
            calls.push(tokio::spawn(async move { task(&client.keyed("k", "wait", json!({})).await) }));
        }
    }
    let mut ids = Vec::new();
    for call in calls {
        ids.push(call.await.unwrap());
    }
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    let engine = server.receiver().engine();
    until("one running task", async || {
        engine.load().iter().map(|(_, running, queued)| running + queued).sum::<usize>() == 1
    })
    .await;
    door.open(1);
    until("no running task", async || engine.load().iter().all(|(_, running, queued)| running + queued == 0)).await;
}
