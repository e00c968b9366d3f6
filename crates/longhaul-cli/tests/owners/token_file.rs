//! The token file is followed.

use std::path::PathBuf;

use longhaul::{Owner, Tokens};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::raw::Request;
use crate::support::stateful::{LATEST, Stateful};
use crate::support::{Client, Launch, Server, in_time, longhaul};

/// A token file, and a directory around it.
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

    /// Puts these tokens in place of those that it has, at once.
    fn write(&self, tokens: &[(&str, &str)]) {
        let line = |(owner, token): &(&str, &str)| Tokens::line(&Owner::parse(owner).unwrap(), token);
        self.write_text(&tokens.iter().map(line).collect::<Vec<_>>().join("\n"));
    }

    fn write_text(&self, text: &str) {
        let beside = self.path.with_extension("new");
        std::fs::write(&beside, text).unwrap();
        std::fs::rename(beside, &self.path).unwrap();
    }

    async fn serve(&self) -> Server {
        Launch::conformance().arg("--token-file").arg(&self.path).start().await
    }
}

/// The status that a request with this token gets.
fn status(server: &Server, token: &str) -> u16 {
    let ping = json!({
        "jsonrpc": "2.0", "id": 1, "method": "server/discover",
        "params": { "_meta": {
            "io.modelcontextprotocol/protocolVersion": crate::support::VERSION,
            "io.modelcontextprotocol/clientCapabilities": {},
        } },
    });
    Request::rpc(&ping).with("Authorization", format!("Bearer {token}")).send(server.address()).status
}

/// Waits until a token gets that status.
async fn until(server: &Server, token: &str, wanted: u16) {
    in_time(&format!("{wanted} for {token}"), async {
        while status(server, token) != wanted {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

async fn client(server: &Server, token: &str) -> Client {
    let mut client = Client::connect(server.address()).await.unwrap();
    client.token = Some(token.to_owned());
    client
}

async fn session(server: &Server, token: &str) -> Stateful {
    let mut client = Stateful::new(server.address());
    client.token = Some(token.to_owned());
    client.initialize(LATEST, json!({ "elicitation": {} })).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_added_lets_its_owner_in_without_a_restart() {
    let file = File::with(&[("ada", "adas")]);
    let server = file.serve().await;
    let id = client(&server, "adas").await.create("echo", json!({ "text": "hers" })).await.unwrap();
    let mut stays = client(&server, "adas").await.listen(&[]).await;
    stays.next().await.unwrap();

    let new = |owner: &'static str| {
        let mut command = tokio::process::Command::new(longhaul());
        command.args(["token", "new", owner, "--token-file"]).arg(&file.path);
        async move { String::from_utf8(command.output().await.unwrap().stdout).unwrap().trim().to_owned() }
    };
    let (second, bobs) = (new("ada").await, new("bob").await);
    until(&server, &bobs, 200).await;
    assert_eq!(status(&server, &second), 200);
    assert_eq!(client(&server, &second).await.settled(&id).await.result_text(), "hers", "both tokens are Ada's");
    client(&server, &bobs).await.get(&id).await.unwrap_err();
    // Whoever was there before has noticed nothing.
    assert!(server.stop().await);
    assert!(stays.next().await.unwrap().get("result").is_some(), "the stream ended with the server, in good order");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_taken_out_is_refused_from_then_on_its_streams_end_and_tasks_go_on() {
    let file = File::with(&[("ada", "lost"), ("ada", "kept"), ("bob", "bobs")]);
    let server = file.serve().await;
    let mut lost = client(&server, "lost").await;
    let id = lost.create("slow_compute", json!({ "seconds": 1_000 })).await.unwrap();
    let asks = lost.create("confirm_delete", json!({ "filename": "a.txt" })).await.unwrap();

    // Everything that can stay open, with the token that goes.
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
    let call = call.post_stream(message.to_string(), &headers).await;
    let waits = tokio::spawn({
        let slow = slow.clone();
        async move { plain.send("tools/call", slow).await }
    });
    let in_session = session(&server, "lost").await;
    let mut result = in_session.send("tasks/result", json!({ "taskId": asks })).await;
    let question = result.next_of("elicitation/create").await;
    let mut listening = in_session.listen(None).await;
    listening.begun().await;
    let blocked = tokio::spawn({
        let (session, id) = (in_session.clone(), id.clone());
        async move { session.send("tasks/result", json!({ "taskId": id })).await.status }
    });
    // And some with one that stays.
    let mut kept = client(&server, "kept").await;
    let mut follows = kept.listen(&[&id]).await;
    follows.next().await.unwrap();
    let mut kept_session = in_session.clone();
    kept_session.token = Some("kept".into());
    let mut still_listening = kept_session.listen(None).await;
    still_listening.begun().await;

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
    assert_eq!((status(&server, "lost"), status(&server, "kept"), status(&server, "bobs")), (401, 200, 200));

    // The owner's other token goes on with all of it: tasks, session, and the stream that broke.
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

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_changes_hands_opens_nothing_of_its_former_owner() {
    let file = File::with(&[("ada", "passed on")]);
    let server = file.serve().await;
    let mut client = client(&server, "passed on").await;
    let id = client.create("slow_compute", json!({ "seconds": 1_000 })).await.unwrap();
    let session = session(&server, "passed on").await;
    let mut listening = session.listen(None).await;
    listening.begun().await;

    file.write(&[("bob", "passed on"), ("ada", "adas")]);
    assert_eq!(listening.rest().await, Vec::<Value>::new());
    assert_eq!(status(&server, "passed on"), 200);
    let unknown = client.error("tasks/get", json!({ "taskId": "never was" })).await;
    assert_eq!(client.error("tasks/get", json!({ "taskId": id })).await, unknown);
    assert_eq!(session.send("ping", json!({})).await.status, 404);
    assert_eq!(session.http("GET", &[], "").await.status, 404);
    // Ada finds both with a token of hers.
    let mut hers = session.clone();
    hers.token = Some("adas".into());
    assert_eq!(hers.get(&id).await["status"], "working");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_broken_or_gone_changes_nothing_and_the_log_says_which_line_and_why() {
    let file = File::with(&[("ada", "adas")]);
    let server = file.serve().await;
    let mut stays = client(&server, "adas").await.listen(&[]).await;
    stays.next().await.unwrap();
    let bobs = Tokens::line(&Owner::parse("bob").unwrap(), "bobs");
    let everybodys = Tokens::line(&Owner::parse("local").unwrap(), "locals");

    file.write_text(&format!("{bobs}\nada secret\n"));
    server.says("line 2 must be an owner's name").await;
    file.write_text(&format!("{bobs}\n\n{everybodys}\n"));
    server.says("line 3: \"local\" is the server's own name").await;
    std::fs::remove_file(&file.path).unwrap();
    server.says("No such file").await;
    std::fs::create_dir(&file.path).unwrap();
    server.says("it is not a regular file").await;
    assert_eq!((status(&server, "adas"), status(&server, "bobs"), status(&server, "locals")), (200, 401, 401));

    std::fs::remove_dir(&file.path).unwrap();
    file.write(&[("ada", "adas"), ("bob", "bobs")]);
    server.says("the token file is valid again").await;
    assert_eq!((status(&server, "adas"), status(&server, "bobs")), (200, 200));
    let log = server.log();
    for cause in ["line 2 must", "line 3: ", "not a regular file", "valid again"] {
        assert_eq!(log.matches(cause).count(), 1, "{cause}:\n{log}");
    }
    assert!(log.contains(file.path.to_str().unwrap()), "{log}");
    assert!(server.stop().await);
    assert!(stays.next().await.unwrap().get("result").is_some(), "Ada's stream was there all the time");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_file_lets_nobody_in_until_somebody_is_added() {
    let file = File::with(&[("ada", "adas")]);
    let server = file.serve().await;
    file.write_text("# nobody for now\n");
    until(&server, "adas", 401).await;
    server.says("no caller is accepted").await;
    assert_eq!(status(&server, ""), 401);
    file.write(&[("ada", "adas")]);
    until(&server, "adas", 200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn how_the_server_is_can_be_asked_without_a_token() {
    let file = File::with(&[("ada", "adas")]);
    let server = file.serve().await;
    client(&server, "adas").await.create("echo", json!({ "text": "x" })).await.unwrap();
    for page in ["/healthz", "/metrics"] {
        let answer = Request::get(page).send(server.address());
        assert_eq!(answer.status, 200, "{page}");
        assert!(!answer.text().contains("ada"), "nobody is named: {}", answer.text());
    }
}
