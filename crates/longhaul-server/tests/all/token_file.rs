//! Changes of the token file take effect while the server runs.

use std::path::PathBuf;

use longhaul::{Owner, TokenFile, Tokens};
use longhaul_testkit::raw::RawRequest;
use longhaul_testkit::{LATEST, SessionClient, StatelessClient, TestServer, conformance, in_time, until};
use serde_json::{Value, json};
use tempfile::TempDir;

struct File {
    _directory: TempDir,
    path: PathBuf,
}

impl File {
    fn with(tokens: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = Self { path: directory.path().join("tokens"), _directory: directory };
        file.write(tokens);
        file
    }

    /// Replaces the tokens in the file atomically.
    fn write(&self, tokens: &[(&str, &str)]) {
        let line = |(owner, token): &(&str, &str)| Tokens::line(&Owner::parse(owner).unwrap(), token);
        self.write_text(&tokens.iter().map(line).collect::<Vec<_>>().join("\n"));
    }

    fn write_text(&self, text: &str) {
        let beside = self.path.with_extension("new");
        std::fs::write(&beside, text).unwrap();
        std::fs::rename(beside, &self.path).unwrap();
    }

    async fn serve(&self) -> TestServer {
        TestServer::listen(conformance().identity(TokenFile::open(&self.path).unwrap())).await
    }
}

async fn status(server: &TestServer, token: &str) -> u16 {
    RawRequest::discover().with("Authorization", format!("Bearer {token}")).send(server).await.status
}

async fn until_status(server: &TestServer, token: &str, wanted: u16) {
    until(&format!("{wanted} for {token}"), async || status(server, token).await == wanted).await;
}

async fn client(server: &TestServer, token: &str) -> StatelessClient {
    server.client().await.with_token(token)
}

async fn session(server: &TestServer, token: &str) -> SessionClient {
    SessionClient::new(server).with_token(token).initialize(LATEST, json!({ "elicitation": {} })).await
}

#[tokio::test]
async fn a_token_that_is_added_lets_its_owner_in_without_a_restart() {
    let file = File::with(&[("ada", "adas")]);
    let server = file.serve().await;
    let id = client(&server, "adas").await.create("echo", json!({ "text": "hers" })).await.unwrap();
    let mut stays = client(&server, "adas").await.listen(&[]).await;
    stays.next().await.unwrap();

    file.write(&[("ada", "adas"), ("ada", "second"), ("bob", "bobs")]);
    until_status(&server, "bobs", 200).await;
    assert_eq!(status(&server, "second").await, 200);
    assert_eq!(client(&server, "second").await.settled(&id).await.result_text(), "hers", "both tokens are Ada's");
    client(&server, "bobs").await.get(&id).await.unwrap_err();
    // Callers whose tokens did not change are not affected.
    server.stop().await;
    assert!(stays.next().await.unwrap().get("result").is_some(), "the stream ended with the server, in good order");
}

#[tokio::test]
async fn a_removed_token_ends_its_streams_and_its_tasks_go_on() {
    let file = File::with(&[("ada", "lost"), ("ada", "kept"), ("bob", "bobs")]);
    let server = file.serve().await;
    let mut lost = client(&server, "lost").await;
    let id = lost.create("slow_compute", json!({ "seconds": 1_000 })).await.unwrap();
    let asks = lost.create("confirm_delete", json!({ "filename": "a.txt" })).await.unwrap();

    // Everything that can stay open, with the token that will be removed.
    let mut subscription = lost.listen(&[&id]).await;
    subscription.next().await.unwrap();
    let slow = json!({ "name": "slow_compute", "arguments": { "seconds": 1_000 } });
    let mut plain = lost.again().await;
    plain.capabilities = json!({});
    let mut with_progress = slow.clone();
    with_progress["_meta"] = json!({});
    let mut call = plain.again().await;
    let (mut message, headers) = call.message("tools/call", with_progress);
    message["params"]["_meta"]["progressToken"] = json!("p");
    let mut call = call.post_stream(message.to_string(), &headers).await;
    let waits = tokio::spawn({
        let slow = slow.clone();
        async move { plain.send("tools/call", slow).await }
    });
    let in_session = session(&server, "lost").await;
    let mut result = in_session.send("tasks/result", json!({ "taskId": asks })).await;
    let question = result.next_of("elicitation/create").await;
    let mut listening = in_session.listening().await;
    let blocked = tokio::spawn({
        let (session, id) = (in_session.clone(), id.clone());
        async move { session.send("tasks/result", json!({ "taskId": id })).await.status }
    });
    // Some of it with a token that stays.
    let mut kept = client(&server, "kept").await;
    let mut follows = kept.listen(&[&id]).await;
    follows.next().await.unwrap();
    let kept_session = in_session.clone().with_token("kept");
    let mut still_listening = kept_session.listening().await;

    file.write(&[("ada", "kept"), ("bob", "bobs")]);
    let last_word = |mut messages: Vec<Value>| messages.pop().expect("a message")["error"]["message"].clone();
    let ended = json!("Invalid request: this bearer token is no longer good");
    assert_eq!(last_word(subscription.rest().await), ended);
    assert_eq!(last_word(call.rest().await), ended);
    assert_eq!(in_time("the end of a call", waits).await.unwrap().status, 401);
    assert_eq!(listening.rest().await, Vec::<Value>::new());
    let rest = result.rest().await;
    assert!(rest.iter().all(|message| message.get("result").is_none()), "{rest:?}");
    assert_eq!(in_time("the end of a blocked call", blocked).await.unwrap(), 401);
    for method in ["POST", "GET", "DELETE"] {
        let ping = in_session.message("ping", json!({})).to_string();
        let answer = in_session.http(method, &[], if method == "POST" { ping } else { String::new() }).await;
        assert_eq!(answer.status, 401, "{method}");
    }
    assert_eq!(
        (status(&server, "lost").await, status(&server, "kept").await, status(&server, "bobs").await),
        (401, 200, 200)
    );

    // The owner's other token can continue with all of it: the tasks, the session, and the stream that ended.
    assert_eq!(kept.get(&id).await.unwrap().status(), "working");
    let mut resumed = kept_session.listen(result.last_event.as_deref()).await;
    kept_session.respond(&question, json!({ "action": "accept", "content": { "confirm": true } })).await;
    let answer = resumed.last().await;
    assert!(answer["result"]["content"][0]["text"].as_str().unwrap().contains("a.txt"), "{answer}");
    kept.cancel(&id).await.unwrap();
    while follows.next().await.unwrap()["params"]["status"] != "cancelled" {}
    let told = still_listening.next_of("notifications/tasks/status").await;
    assert!([&id, &asks].contains(&&told["params"]["taskId"].as_str().unwrap().to_owned()), "{told}");
}

#[tokio::test]
async fn a_token_that_changes_hands_opens_nothing_of_its_former_owner() {
    let file = File::with(&[("ada", "passed on")]);
    let server = file.serve().await;
    let mut client = client(&server, "passed on").await;
    let id = client.create("slow_compute", json!({ "seconds": 1_000 })).await.unwrap();
    let session = session(&server, "passed on").await;
    let mut listening = session.listening().await;

    file.write(&[("bob", "passed on"), ("ada", "adas")]);
    assert_eq!(listening.rest().await, Vec::<Value>::new());
    assert_eq!(status(&server, "passed on").await, 200);
    let unknown = client.error("tasks/get", json!({ "taskId": "never was" })).await;
    assert_eq!(client.error("tasks/get", json!({ "taskId": id })).await, unknown);
    assert_eq!(session.send("ping", json!({})).await.status, 404);
    assert_eq!(session.http("GET", &[], "").await.status, 404);
    // Ada finds both with her other token.
    let hers = session.clone().with_token("adas");
    assert_eq!(hers.get(&id).await["status"], "working");
}

#[tokio::test]
async fn an_empty_token_file_lets_no_caller_in_until_one_is_added() {
    let file = File::with(&[("ada", "adas")]);
    let server = file.serve().await;
    file.write_text("# empty for now\n");
    until_status(&server, "adas", 401).await;
    assert_eq!(status(&server, "").await, 401);
    file.write(&[("ada", "adas")]);
    until_status(&server, "adas", 200).await;
}

#[tokio::test]
async fn health_and_metrics_need_no_token_and_name_no_owner() {
    let file = File::with(&[("ada", "adas")]);
    let server = file.serve().await;
    client(&server, "adas").await.create("echo", json!({ "text": "x" })).await.unwrap();
    for page in ["/healthz", "/metrics"] {
        let answer = RawRequest::get(page).send(&server).await;
        assert_eq!(answer.status, 200, "{page}");
        assert!(!answer.text().contains("ada"), "no owner is named: {}", answer.text());
    }
}
