//! Who is calling, and from where: tokens, owners, `Host` and `Origin`.

mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use longhaul::{Owner, Tokens};
use serde_json::json;
use support::raw::Request;
use support::{Client, Launch, Server, longhaul};

fn discover() -> Request {
    Request::rpc(&json!({
        "jsonrpc": "2.0", "id": 1, "method": "server/discover",
        "params": { "_meta": {
            "io.modelcontextprotocol/protocolVersion": support::VERSION,
            "io.modelcontextprotocol/clientCapabilities": {},
        } },
    }))
}

/// A server that knows Ada and Bob, and a client for each.
async fn two_owners(directory: &Path) -> (Server, Client, Client) {
    let file = directory.join("tokens");
    let line = |owner: &str, token: &str| Tokens::line(&Owner::parse(owner).unwrap(), token);
    std::fs::write(&file, format!("# two of them\n{}\n\n{}\n", line("ada", "adas"), line("bob", "bobs"))).unwrap();
    let server = Launch::conformance().arg("--token-file").arg(file).start().await;
    let mut ada = Client::connect(server.address()).await.unwrap();
    let mut bob = ada.again().await;
    ada.token = Some("adas".into());
    bob.token = Some("bobs".into());
    (server, ada, bob)
}

/// What `longhaul token new` says, and nothing else.
async fn new_token(owner: &str, file: &Path) -> String {
    let mut command = tokio::process::Command::new(longhaul());
    let output = command.args(["token", "new", owner, "--token-file"]).arg(file).output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

#[tokio::test]
async fn a_token_can_be_made_for_everybody_who_needs_one() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tokens");
    let ada = new_token("ada", &file).await;
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    // As an editor may leave it.
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.trim_end()).unwrap();
    let bob = new_token("bob", &file).await;
    let server = Launch::conformance().arg("--token-file").arg(&file).start().await;
    let mut client = Client::connect(server.address()).await.unwrap();
    client.token = Some(ada);
    let id = client.create("echo", json!({ "text": "hers" })).await.unwrap();
    client.settled(&id).await;
    client.token = Some(bob);
    client.get(&id).await.unwrap_err();
    assert!(!server.log().contains("chmod"), "{}", server.log());
    assert!(server.stop().await);

    std::fs::write(&file, "dear diary").unwrap();
    let mut command = tokio::process::Command::new(longhaul());
    let refused = command.args(["token", "new", "eve", "--token-file"]).arg(&file).output().await.unwrap();
    assert!(!refused.status.success() && refused.stdout.is_empty());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "dear diary", "it was no token file");
}

#[tokio::test]
async fn a_token_that_nobody_could_use_is_not_made_in_silence() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tokens");
    let make = |owner: &str| {
        let mut command = tokio::process::Command::new(longhaul());
        command.args(["token", "new", "--token-file"]).arg(&file).args(["--", owner]);
        command
    };
    for owner in ["#ada", " ada", "ada "] {
        assert_eq!(make(owner).output().await.unwrap().status.code(), Some(2), "{owner:?}");
        assert!(!file.exists(), "{owner:?}");
    }
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let unseen = make("ada").stdout(full).stderr(std::process::Stdio::null()).status().await.unwrap();
    assert_eq!(unseen.code(), Some(1));
}

#[tokio::test]
async fn a_token_file_that_others_can_read_is_used_with_a_warning() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tokens");
    new_token("ada", &file).await;
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let server = Launch::conformance().arg("--token-file").arg(&file).start().await;
    assert!(server.log().contains("chmod 600"), "{}", server.log());
    assert!(server.stop().await);
}

#[tokio::test]
async fn a_token_file_is_made_for_its_user_alone_and_shows_its_token_once() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tokens");
    let server = Launch::longhaul().arg("--token-file").arg(&file).start().await;
    let log = server.log();
    assert!(log.contains("shown this once"), "{log}");
    let is_token = |line: &&str| line.len() == 64 && line.bytes().all(|byte| byte.is_ascii_hexdigit());
    let token = log.lines().map(str::trim).find(is_token).expect("a token").to_owned();
    let kept = std::fs::read_to_string(&file).unwrap();
    assert!(!kept.contains(&token), "only the hash is kept");
    assert_eq!(kept.lines().filter(|line| !line.starts_with('#')).count(), 1, "{kept}");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let call = |token: &str| discover().with("Authorization", format!("Bearer {token}"));
    assert_eq!(call(&token).send(server.address()).status, 200);
    assert_eq!(call(&kept[kept.len() - 65..kept.len() - 1]).send(server.address()).status, 401, "the hash is no token");
    assert!(server.stop().await);

    let server = Launch::longhaul().arg("--token-file").arg(&file).start().await;
    assert!(!server.log().contains(&token) && !server.log().contains("shown this once"), "{}", server.log());
    assert_eq!(call(&token).send(server.address()).status, 200);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), kept);
}

#[tokio::test]
async fn without_a_known_token_nothing_is_even_read() {
    let directory = tempfile::tempdir().unwrap();
    let (server, ..) = two_owners(directory.path()).await;
    let wrong = [
        None,
        Some(""),
        Some("Bearer"),
        Some("Bearer "),
        Some("Bearer wrong"),
        Some("Bearer adas bobs"),
        Some("Bearer ada"),
        Some("Bearer ADAS"),
        Some("Basic adas"),
        Some("adas"),
        Some("Bearer \u{fffd}"),
    ];
    for value in wrong {
        for body in [discover().body, b"nonsense".to_vec(), vec![b' '; 5 << 20]] {
            let request = Request { body, ..discover() };
            let request = match value {
                Some(value) => request.with("Authorization", value),
                None => request,
            };
            let answer = request.send(server.address());
            assert_eq!(answer.status, 401, "{value:?}: {}", answer.text());
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"), "{value:?}");
            assert_eq!(answer.json()["error"]["code"], -32600);
            assert!(answer.json().get("id").is_none());
        }
    }
    for value in ["Bearer adas", "bearer adas", "BEARER   adas "] {
        assert_eq!(discover().with("Authorization", value).send(server.address()).status, 200, "{value}");
    }
}

#[tokio::test]
async fn somebody_elses_task_looks_like_one_that_never_was() {
    let directory = tempfile::tempdir().unwrap();
    let (_server, mut ada, mut bob) = two_owners(directory.path()).await;
    let done = ada.create("echo", json!({ "text": "secret" })).await.unwrap();
    ada.settled(&done).await;
    let asks = ada.create("confirm_delete", json!({ "filename": "a.txt" })).await.unwrap();
    let key = ada.asked(&asks, 1).await.remove(0);
    let running = ada.create("slow_compute", json!({ "seconds": 1_000 })).await.unwrap();

    let yes = json!({ &key: { "action": "accept", "content": { "confirm": true } } });
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        for responses in [&yes, &json!({}), &json!({ "wrong": 5 })] {
            let mut answers = Vec::new();
            for id in ["000000000000000000000000000000000000000000", &done, &asks, &running] {
                let (mut message, headers) = bob.message(method, json!({ "taskId": id, "inputResponses": responses }));
                message["id"] = json!(1);
                let answer = bob.exchange(message.to_string(), &headers).await.unwrap();
                let kinds = answer.headers.get("content-type").cloned();
                answers.push((answer.status, kinds, answer.body));
            }
            assert!(answers.iter().all(|answer| *answer == answers[0]), "{method}: {answers:?}");
            assert_eq!(answers[0].0, 200);
        }
    }
    let mut events = bob.listen(&[&done, &asks, &running]).await;
    assert_eq!(events.next().await.unwrap()["params"]["notifications"]["taskIds"], json!([]));

    assert_eq!(ada.get(&running).await.unwrap().status(), "working", "nobody else can cancel it");
    assert_eq!(ada.get(&asks).await.unwrap().questions(), [key], "nobody else can answer it");
    ada.cancel(&running).await.unwrap();
}

#[tokio::test]
async fn a_request_state_is_of_no_use_to_anybody_else() {
    let directory = tempfile::tempdir().unwrap();
    let (_server, mut ada, mut bob) = two_owners(directory.path()).await;
    let tool = "test_input_required_result_request_state";
    let asked = ada.call(tool, json!({})).await.unwrap();
    let yes = json!({ "confirm": { "action": "accept", "content": { "ok": true } } });
    let again = json!({ "name": tool, "arguments": {}, "inputResponses": yes, "requestState": asked["requestState"] });
    assert_eq!(bob.error("tools/call", again.clone()).await["code"], -32602);
    ada.request("tools/call", again).await.unwrap();
}

/// What the program says when it does not start, and its exit code.
async fn refused(arguments: &[&str]) -> (i32, String) {
    let output = tokio::process::Command::new(longhaul()).arg("serve").args(arguments).output().await.unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[tokio::test]
async fn without_tokens_only_this_machine_is_served() {
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let (code, said) = refused(&["--store", "memory:", "--listen", address]).await;
        assert_eq!(code, 5, "{said}");
        assert!(said.contains("add --token-file FILE"), "{said}");
        assert!(said.contains(&address.replace(":0", "")) && said.contains("[TOKEN_NEEDED]"), "{said}");
        assert!(!said.contains("is listening on"), "{said}");
    }
    let server = Launch::longhaul().start().await;
    server.says("only this machine can connect").await;
}

#[tokio::test]
async fn a_token_file_that_cannot_be_used_lets_nobody_in() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tokens");
    let path = file.to_str().unwrap();
    for (text, why) in [("", "no tokens"), ("# none\n", "no tokens"), ("ada\n", "line 1"), ("\nada 12\n", "line 2")] {
        std::fs::write(&file, text).unwrap();
        let (code, said) = refused(&["--store", "memory:", "--listen", "127.0.0.1:0", "--token-file", path]).await;
        assert_eq!(code, 1, "{said}");
        assert!(said.contains(why) && said.contains("[BAD_TOKEN_FILE]"), "{said}");
    }
    let (code, said) = refused(&["--stdio", "--token-file", path]).await;
    assert_eq!(code, 2, "{said}");
}

#[tokio::test]
async fn a_server_without_tokens_answers_only_to_names_of_this_machine() {
    let server = Launch::conformance().arg("--allow-origin").arg("https://app.example").start().await;
    let port = server.address().port();
    let hosts = [
        ("localhost".to_owned(), 200),
        (format!("localhost:{port}"), 200),
        (format!("127.0.0.1:{port}"), 200),
        (format!("[::1]:{port}"), 200),
        ("evil.example".to_owned(), 403),
        (format!("evil.example:{port}"), 403),
        ("127.0.0.1.evil.example".to_owned(), 403),
        ("localhost.evil.example".to_owned(), 403),
        ("10.0.0.1".to_owned(), 403),
        (String::new(), 403),
    ];
    for (host, status) in hosts {
        let answer = discover().set("Host", &host).send(server.address());
        assert_eq!(answer.status, status, "Host {host:?}: {}", answer.text());
    }
    let origins = [
        (format!("http://localhost:{port}"), 200),
        ("http://127.0.0.1:3000".to_owned(), 200),
        ("https://app.example".to_owned(), 200),
        ("https://app.example.evil.example".to_owned(), 403),
        ("http://evil.example".to_owned(), 403),
        ("http://localhost.evil.example".to_owned(), 403),
        ("http://localhost@evil.example".to_owned(), 403),
        ("null".to_owned(), 403),
        (String::new(), 403),
    ];
    for (origin, status) in origins {
        let answer = discover().with("Origin", &origin).send(server.address());
        assert_eq!(answer.status, status, "Origin {origin:?}: {}", answer.text());
        if status == 403 {
            assert_eq!(answer.json()["error"]["code"], -32600);
            assert!(answer.json().get("id").is_none());
        }
    }
    let two = discover().with("Origin", "http://localhost").with("Origin", "http://evil.example");
    assert_eq!(two.send(server.address()).status, 403, "a second origin is not overlooked");
    let two = discover().with("Host", "evil.example");
    assert_eq!(two.send(server.address()).status, 403, "nor is a second host");
}

#[tokio::test]
async fn a_server_with_tokens_answers_to_any_name_and_lets_in_its_own_origin() {
    let directory = tempfile::tempdir().unwrap();
    let (server, ..) = two_owners(directory.path()).await;
    let call = |host: &str| discover().set("Host", host).with("Authorization", "Bearer adas");
    assert_eq!(call("tasks.example").send(server.address()).status, 200);
    assert_eq!(call("tasks.example").with("Origin", "https://tasks.example").send(server.address()).status, 200);
    assert_eq!(call("tasks.example").with("Origin", "https://evil.example").send(server.address()).status, 403);
    assert_eq!(call("tasks.example").with("Origin", "http://localhost").send(server.address()).status, 403);
}
