//! The local user is an owner of its own, whom no token can name.

use std::path::Path;
use std::process::Stdio;

use longhaul::{Owner, Tokens};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::support::{Client, Launch, VERSION, in_time, longhaul};

/// Says this to a server on a pipe, closes it, and gives back what the server says.
async fn over_stdio(store: &Path, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": { "extensions": { "io.modelcontextprotocol/tasks": {} } },
    });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let mut command = Command::new(longhaul().with_file_name("examples").join("conformance"));
    command.args(["--stdio", "--store"]).arg(format!("sqlite:{}", store.display())).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the example is built");
    let mut input = child.stdin.take().unwrap();
    input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    drop(input);
    let output = in_time("the end of a server on a pipe", child.wait_with_output()).await.unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_made_over_stdio_is_the_local_users_and_not_seen_over_http() {
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().join("tasks.db");
    let made = over_stdio(&store, "tools/call", json!({ "name": "echo", "arguments": { "text": "here" } })).await;
    let id = made["result"]["taskId"].as_str().expect("a task").to_owned();

    let tokens = directory.path().join("tokens");
    std::fs::write(&tokens, Tokens::line(&Owner::parse("ada").unwrap(), "adas")).unwrap();
    for token in [Some("adas"), None] {
        let launch = Launch::conformance().store(&store);
        let launch = if token.is_some() { launch.arg("--token-file").arg(&tokens) } else { launch };
        let server = launch.start().await;
        let mut client = Client::connect(server.address()).await.unwrap();
        client.token = token.map(str::to_owned);
        let unknown = client.error("tasks/get", json!({ "taskId": "never was" })).await;
        assert_eq!(client.error("tasks/get", json!({ "taskId": id })).await, unknown);
        assert!(server.stop().await);
    }
    let again = over_stdio(&store, "tasks/get", json!({ "taskId": id })).await;
    assert_eq!(again["result"]["taskId"], json!(id), "the next client of the same user finds it");
}

#[tokio::test]
async fn no_token_can_be_the_local_users_or_everybodys() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tokens");
    for name in ["local", "anonymous"] {
        let mut new = Command::new(longhaul());
        let output = new.args(["token", "new", name, "--token-file"]).arg(&file).output().await.unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(&format!("{name:?} is the server's own name")), "{said}");
        assert!(!file.exists(), "nothing was made");

        let line = Tokens::line(&Owner::parse(name).unwrap(), "secret");
        let file = directory.path().join(name);
        std::fs::write(&file, format!("# one\n{line}\n")).unwrap();
        let mut serve = Command::new(longhaul());
        serve.args(["serve", "--store", "memory:", "--listen", "127.0.0.1:0", "--token-file"]).arg(&file);
        let output = serve.output().await.unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(&format!("line 2: {name:?} is the server's own name")), "{said}");
        assert!(said.contains("[BAD_TOKEN_FILE]"), "{said}");
    }
}
