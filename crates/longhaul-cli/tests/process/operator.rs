//! The operator's commands, with a running server and without.

use std::path::{Path, PathBuf};

use longhaul_testkit::{SessionClient, StatelessClient, in_time, names};
use serde_json::{Value, json};

use crate::kit::{Launch, ServerProcess, longhaul, place};

pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

pub(crate) async fn run(arguments: &[&str]) -> Said {
    let output = tokio::process::Command::new(longhaul()).args(arguments).output().await.unwrap();
    Said {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

impl Said {
    /// Standard output of a command that must have succeeded.
    pub(crate) fn succeeded(self) -> String {
        assert_eq!(self.code, 0, "{}{}", self.out, self.err);
        self.out
    }

    /// Standard output, the command having succeeded without a word on standard error.
    fn ok(self) -> String {
        assert_eq!(self.err, "", "{}", self.out);
        self.succeeded()
    }

    fn json(self) -> Value {
        serde_json::from_str(&self.ok()).expect("JSON")
    }

    /// Checks that the command failed with this exit code, and with this word in one line on standard error.
    pub(crate) fn fails(&self, code: i32, word: &str) {
        assert_eq!(self.code, code, "{}{}", self.out, self.err);
        assert_eq!(self.out, "");
        assert_eq!(self.err.lines().count(), 1, "{}", self.err);
        assert!(
            self.err.starts_with("longhaul: ") && self.err.trim_end().ends_with(&format!("[{word}]")),
            "{}",
            self.err
        );
    }
}

struct OperatorStore {
    directory: tempfile::TempDir,
    file: PathBuf,
    store: String,
}

impl OperatorStore {
    fn new() -> Self {
        let (directory, file) = place("tasks.db");
        Self { store: url(&file), directory, file }
    }

    async fn server(&self) -> (ServerProcess, StatelessClient) {
        crate::start(&self.file).await
    }

    /// Runs a command on the store.
    async fn run(&self, arguments: &[&str]) -> Said {
        run(&[arguments, &["--store", &self.store]].concat()).await
    }

    fn beside(&self, name: &str) -> PathBuf {
        self.file.with_file_name(name)
    }
}

fn url(file: &Path) -> String {
    format!("sqlite:{}", file.display())
}

#[tokio::test]
async fn tasks_are_listed_and_shown_with_a_server_and_without() {
    let world = OperatorStore::new();
    let (server, mut client) = world.server().await;
    assert_eq!(world.run(&["task", "list"]).await.ok(), "There are no tasks.\n");
    assert_eq!(world.run(&["task", "list", "--json"]).await.ok(), "");
    let done = client.create("echo", json!({ "text": "hello" })).await.unwrap();
    client.settled(&done).await;
    let failed = client.create("protocol_error_job", json!({})).await.unwrap();
    client.settled(&failed).await;

    let mut server = Some(server);
    loop {
        let listed = world.run(&["task", "list"]).await.ok();
        let rows: Vec<&str> = listed.lines().collect();
        assert!(rows[0].starts_with("TASK") && rows.len() == 3, "{listed}");
        assert!(rows[1].starts_with(&failed) && rows[1].contains("failed"), "newest first: {listed}");
        assert!(rows[2].starts_with(&done) && rows[2].contains("completed") && rows[2].contains("echo"), "{listed}");
        let listed = world.run(&["task", "list", "--json"]).await.ok();
        let objects: Vec<Value> = listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(objects.iter().map(|task| &task["taskId"]).collect::<Vec<_>>(), [&json!(failed), &json!(done)]);
        let first = world.run(&["task", "list", "--limit", "1"]).await.ok();
        assert!(first.contains("more"), "{first}");
        let empty = world.run(&["task", "list", "--owner", "unknown", "--json"]).await.ok();
        assert_eq!(empty, "");

        let shown = world.run(&["task", "get", &done]).await.ok();
        assert!(shown.contains("status    completed") && shown.contains("hello"), "{shown}");
        let object = world.run(&["task", "get", &done, "--json"]).await.json();
        assert_eq!(
            (&object["status"], &object["tool"], &object["attempt"]),
            (&json!("completed"), &json!("echo"), &json!(1))
        );
        assert_eq!(object["result"]["content"][0]["text"], "hello");
        let object = world.run(&["task", "get", &failed, "--json"]).await.json();
        assert_eq!(object["error"]["code"], -32603, "{object}");

        world.run(&["task", "get", "unknown"]).await.fails(3, "NOT_FOUND");
        world.run(&["task", "get", &done, "--owner", "nobody"]).await.fails(3, "NOT_FOUND");
        world.run(&["task", "get", ""]).await.fails(2, "USAGE");
        match server.take() {
            Some(server) => assert!(server.stop().await),
            None => break,
        }
    }
}

/// Its ID is stored with its session.
#[tokio::test]
async fn the_id_of_an_anonymous_task_is_printable_and_can_be_pasted() {
    let world = OperatorStore::new();
    let (server, _) = world.server().await;
    let session = SessionClient::new(server.address()).initialize("2025-06-18", json!({})).await;
    let meta = json!({ "modelcontextprotocol.io/task": { "taskId": "mine" } });
    let call = json!({ "name": "echo", "arguments": { "text": "hello" }, "_meta": meta });
    session.send("tools/call", call).await.last().await;
    let listed = world.run(&["task", "list"]).await.ok();
    let id = listed.lines().nth(1).and_then(|row| row.split_whitespace().next()).unwrap();
    assert!(id.ends_with("/mine") && id.is_ascii(), "{listed}");
    let shown = world.run(&["task", "get", id]).await.ok();
    assert!(shown.starts_with(&format!("task      {id}\n")) && shown.contains("hello"), "{shown}");
    let stored = world.run(&["task", "get", id, "--json"]).await.json()["taskId"].take();
    let again = world.run(&["task", "get", stored.as_str().unwrap()]).await.ok();
    assert_eq!(again, shown, "what --json prints can be pasted, too");
    server.stop().await;
}

#[tokio::test]
async fn an_id_that_would_reverse_the_text_after_it_is_escaped_and_can_be_pasted() {
    let world = OperatorStore::new();
    let (server, _) = world.server().await;
    let session = SessionClient::new(server.address()).initialize("2025-06-18", json!({})).await;
    let meta = json!({ "modelcontextprotocol.io/task": { "taskId": "mine\u{202e}enim" } });
    let call = json!({ "name": "echo", "arguments": { "text": "\u{2067}hello" }, "_meta": meta });
    session.send("tools/call", call).await.last().await;
    let listed = world.run(&["task", "list"]).await.ok();
    let id = listed.lines().nth(1).and_then(|row| row.split_whitespace().next()).unwrap();
    assert!(id.ends_with(r"/mine\u{202e}enim") && listed.is_ascii(), "{listed:?}");
    let shown = world.run(&["task", "get", id]).await.ok();
    assert!(shown.is_ascii() && shown.contains(r"\u{2067}hello"), "{shown:?}");
    let object = world.run(&["task", "get", id, "--json"]).await.json();
    assert!(object["taskId"].as_str().unwrap().ends_with("mine\u{202e}enim"), "{object}");
    server.stop().await;
}

#[tokio::test]
async fn the_history_of_a_task_shows_what_happened_and_contents_only_if_asked() {
    let place = OperatorStore::new();
    let (server, mut client) = place.server().await;
    let steps = client.create("empty_steps", json!({ "steps": 2, "text": "said" })).await.unwrap();
    client.settled(&steps).await;
    let asks = client.create("confirm_delete", json!({ "filename": "secret.txt" })).await.unwrap();
    let key = client.asked(&asks, 1).await.remove(0);
    server.kill().await;
    let (_server, mut client) = place.server().await;
    let yes = json!({ "action": "accept", "content": { "confirm": true } });
    client.update(&asks, json!({ &key: yes })).await.unwrap();
    client.settled(&asks).await;

    let events = |out: String| -> Vec<Value> { out.lines().map(|line| serde_json::from_str(line).unwrap()).collect() };
    let kinds =
        |events: &[Value]| events.iter().map(|event| event["event"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    let history = events(place.run(&["task", "history", &steps, "--json"]).await.ok());
    assert_eq!(kinds(&history), ["created", "attempt.began", "step", "step", "settled"]);
    let history = events(place.run(&["task", "history", &asks, "--json"]).await.ok());
    for expected in ["created", "question.asked", "attempt.ended", "question.answered", "settled"] {
        assert!(kinds(&history).contains(&expected.to_owned()), "{expected}: {history:?}");
    }
    assert!(history.iter().any(|event| event["end"] == "lost" || event["end"] == "parked"), "{history:?}");
    let times: Vec<u64> = history.iter().map(|event| event["atMs"].as_u64().unwrap()).collect();
    assert!(times.is_sorted(), "{times:?}");
    assert!(history.iter().all(|event| event.get("output").is_none()), "{history:?}");
    let contents = place.run(&["task", "history", &asks, "--contents"]).await.ok();
    assert!(contents.contains("\"confirm\":true"), "{contents}");
    let plain = place.run(&["task", "history", &asks]).await.ok();
    assert!(plain.contains("was answered") && !plain.contains("\"confirm\":true"), "{plain}");
}

#[tokio::test]
async fn a_task_of_a_running_server_is_cancelled_by_that_server() {
    let world = OperatorStore::new();
    let (server, mut client) = world.server().await;
    let (text, object) = (
        client.create("slow_compute", json!({ "seconds": 1_000 })).await.unwrap(),
        client.create("slow_compute", json!({ "seconds": 1_000 })).await.unwrap(),
    );
    let mut events = client.listen(&[&text]).await;
    events.next().await.unwrap();
    assert_eq!(events.next().await.unwrap()["params"]["status"], "working");
    let said = world.run(&["task", "cancel", &text]).await.ok();
    assert_eq!(said, format!("{text} is cancelled.\n"));
    let pushed = events.next().await.unwrap();
    assert_eq!(pushed["params"]["status"], "cancelled", "a client that follows it gets the change: {pushed}");
    assert_eq!(pushed["params"]["statusMessage"], "cancelled by the operator");
    let said = world.run(&["task", "cancel", &object, "--json"]).await.json();
    assert_eq!(said, json!({ "taskId": object, "status": "cancelled" }));
    client.until_metric("longhaul_tasks_running", 0.0).await;

    world.run(&["task", "cancel", "unknown"]).await.fails(3, "NOT_FOUND");
    let again = world.run(&["task", "cancel", &text]).await;
    assert_eq!(again.code, 1, "it has ended: {}", again.err);
    assert!(server.stop().await);
}

#[tokio::test]
async fn a_task_that_a_dead_server_left_can_be_cancelled_too() {
    let world = OperatorStore::new();
    let (server, mut client) = world.server().await;
    let id = client.create("slow_compute", json!({ "seconds": 1_000 })).await.unwrap();
    server.kill().await;
    let said = world.run(&["task", "cancel", &id]).await.ok();
    assert_eq!(said, format!("{id} is cancelled.\n"));
    let object = world.run(&["task", "get", &id, "--json"]).await.json();
    assert_eq!((&object["status"], &object["message"]), (&json!("cancelled"), &json!("cancelled by the operator")));
    world.run(&["task", "cancel", "unknown"]).await.fails(3, "NOT_FOUND");
    let (server, mut client) = world.server().await;
    assert_eq!(client.get(&id).await.unwrap().status(), "cancelled");
    assert!(server.stop().await);
}

#[tokio::test]
async fn a_backup_is_a_store_of_its_own_with_a_server_and_without() {
    let world = OperatorStore::new();
    let (server, mut client) = world.server().await;
    let done = client.create("echo", json!({ "text": "kept" })).await.unwrap();
    let before = client.settled(&done).await;
    let (with, without) = (world.beside("with.db"), world.beside("without.db"));
    let said = world.run(&["store", "backup", with.to_str().unwrap()]).await.ok();
    assert_eq!(said, format!("The store is copied to {}.\n", with.display()));
    world.run(&["store", "backup", with.to_str().unwrap()]).await.fails(1, "BACKUP_EXISTS");
    assert!(server.stop().await);
    world.run(&["store", "backup", without.to_str().unwrap()]).await.ok();

    for copy in [with, without] {
        let object = run(&["task", "get", &done, "--json", "--store", &url(&copy)]).await.json();
        assert_eq!(object["result"]["content"][0]["text"], "kept");
        let (server, mut client) = crate::start(&copy).await;
        assert_eq!(client.get(&done).await.unwrap().value, before.value, "a server serves it as before");
        assert!(server.stop().await);
    }
}

#[tokio::test]
async fn a_store_that_cannot_be_used_is_refused_with_its_own_code() {
    let world = OperatorStore::new();
    let (server, mut client) = world.server().await;
    let id = client.create("echo", json!({ "text": "kept" })).await.unwrap();
    client.settled(&id).await;
    let copy = world.beside("copy.db");
    world.run(&["store", "backup", copy.to_str().unwrap()]).await.ok();
    let second = world.run(&["serve", "--listen", "127.0.0.1:0"]).await;
    second.fails(4, "STORE_LOCKED");
    assert!(second.err.contains("in use by process"), "{}", second.err);

    let whole = std::fs::read(&copy).unwrap();
    let version = 60..64;
    let mut newer = whole.clone();
    newer[version].copy_from_slice(&99_u32.to_be_bytes());
    let mut scribbled = whole.clone();
    scribbled[4_096..8_192].fill(0x5a);
    let damage: [(&str, &[u8], &str); 4] = [
        ("newer.db", &newer, "STORE_NEWER"),
        ("cut.db", &whole[..whole.len() - 100], "STORE_DAMAGED"),
        ("text.db", b"this is no database, but it is long enough to look at", "STORE_NOT_A_DATABASE"),
        ("scribbled.db", &scribbled, "STORE_DAMAGED"),
    ];
    for (name, bytes, word) in damage {
        let file = world.beside(name);
        std::fs::write(&file, bytes).unwrap();
        let store = url(&file);
        let serve = run(&["serve", "--listen", "127.0.0.1:0", "--store", &store]).await;
        serve.fails(4, word);
        assert_eq!(std::fs::read(&file).unwrap(), bytes, "{name} was touched");
        let litter = |at: &String| at.starts_with(name) && at != name;
        assert_eq!(names(world.directory.path()).into_iter().find(litter), None);
        if name != "scribbled.db" {
            run(&["task", "list", "--store", &store]).await.fails(4, word);
            run(&["task", "get", &id, "--store", &store]).await.fails(4, word);
            run(&["task", "cancel", &id, "--store", &store]).await.fails(4, word);
        }
        let to = world.beside("never.db");
        run(&["store", "backup", to.to_str().unwrap(), "--store", &store]).await.fails(4, word);
        assert!(!to.exists(), "half a backup was left");
    }
    let nowhere = url(&world.beside("nowhere.db"));
    for command in [vec!["task", "list"], vec!["task", "get", "x"], vec!["task", "cancel", "x"]] {
        run(&[&command[..], &["--store", &nowhere]].concat()).await.fails(4, "STORE_MISSING");
    }
    assert!(!world.beside("nowhere.db").exists(), "looking for a store makes none");
    assert!(server.stop().await);
}

#[tokio::test]
async fn a_wrong_command_line_has_its_own_exit_code() {
    for arguments in [
        &[][..],
        &["nonsense"],
        &["task"],
        &["task", "get"],
        &["task", "list", "--limit", "many"],
        &["task", "list", "--limit", "0"],
        &["task", "list", "--store", "tape:reel7"],
        &["task", "list", "--store", "memory:"],
        &["store", "backup"],
        &["serve", "--listen", "nowhere"],
        &["serve", "--listen", "8377"],
        &["token", "new", "", "--token-file", "/dev/null"],
        &["serve", "--log-format", "xml"],
    ] {
        let said = run(arguments).await;
        assert_eq!(said.code, 2, "{arguments:?}: {}", said.err);
        assert_eq!(said.out, "", "{arguments:?}");
    }
}

#[tokio::test]
async fn every_help_text_tells_the_exit_codes() {
    let commands = [
        &[][..],
        &["serve"],
        &["task"],
        &["task", "list"],
        &["task", "get"],
        &["task", "cancel"],
        &["store"],
        &["store", "backup"],
        &["token"],
        &["token", "new"],
        &["token", "revoke"],
    ];
    for command in commands {
        let help = run(&[command, &["--help"]].concat()).await.ok();
        for line in
            ["Exit codes:", "0  done", "2  the command line is wrong", "3  there is no such task", "4  the store"]
        {
            assert!(help.contains(line), "{command:?} does not say {line:?}:\n{help}");
        }
        if command.first() != Some(&"serve") {
            assert!(!help.contains("memory:"), "{command:?} offers what it cannot do:\n{help}");
        }
        if command.first() == Some(&"task") {
            assert!(help.contains("input_required"), "{command:?} does not say what clients see:\n{help}");
        }
    }
    assert!(run(&["serve", "--help"]).await.ok().contains("10 s"), "how long a stop takes");
}

#[tokio::test]
async fn a_wrong_store_or_address_is_reported_with_a_remedy() {
    let world = OperatorStore::new();
    let serve = async |flag: &str, value: &str| run(&["serve", "--listen", "127.0.0.1:0", flag, value]).await;
    let typo = serve("--store", &url(&world.beside("tsaks/tasks.db"))).await;
    typo.fails(4, "STORE_NO_DIRECTORY");
    assert_eq!(names(world.directory.path()), [""; 0], "a typing error makes no directory");
    let directory = serve("--store", &url(world.directory.path())).await;
    directory.fails(4, "STORE_IS_A_DIRECTORY");
    assert!(directory.err.contains("such as") && directory.err.contains("tasks.db"), "{}", directory.err);
    std::fs::write(&world.file, "").unwrap();
    world.run(&["task", "list"]).await.fails(4, "STORE_EMPTY");
    world.run(&["serve", "--listen", "0.0.0.0:0"]).await.fails(5, "TOKEN_NEEDED");
    let no_port = run(&["serve", "--listen", "8377"]).await;
    assert!(no_port.err.contains("such as 127.0.0.1:8377"), "{}", no_port.err);

    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    world.run(&["serve", "--listen", &address]).await.fails(5, "CANNOT_LISTEN");
    assert_eq!(std::fs::read(&world.file).unwrap(), b"", "the store was not touched");
    assert_eq!(names(world.directory.path()), ["tasks.db"]);
}

#[tokio::test]
async fn an_order_is_taken_up_to_its_last_byte() {
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
    let world = OperatorStore::new();
    let server = Launch::longhaul().store(&world.file).start().await;
    for (bytes, word) in [(4 << 10, "NOT_FOUND"), ((4 << 10) + 1, "BAD_ORDER")] {
        let mut stream = tokio::net::UnixStream::connect(format!("{}.sock", world.file.display())).await.unwrap();
        let order = json!({ "cancel": { "owner": "ada", "id": "never was" } }).to_string();
        // The last character is a bracket.
        let padded = format!("{}{}", " ".repeat(bytes - order.len()), order);
        stream.write_all(padded.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = String::new();
        in_time("an answer", BufReader::new(stream).read_line(&mut answer)).await.unwrap();
        assert!(answer.contains(word), "{bytes} bytes: {answer}");
    }
    server.kill().await;
}

/// A server that takes an order and ends before it replies.
#[tokio::test]
async fn a_server_that_ends_during_a_cancellation_leaves_a_clear_error() {
    let world = OperatorStore::new();
    let (server, mut client) = world.server().await;
    let id = client.create("slow_compute", json!({ "seconds": 1_000 })).await.unwrap();
    server.kill().await;
    let socket = format!("{}.sock", world.file.display());
    std::fs::remove_file(&socket).unwrap();
    let listener = tokio::net::UnixListener::bind(&socket).unwrap();
    let ends = async {
        let (stream, _) = listener.accept().await.unwrap();
        stream.readable().await.unwrap();
    };
    let cancel = ["task", "cancel", &id];
    let (said, ()) = in_time("an order without a reply", async { tokio::join!(world.run(&cancel), ends) }).await;
    said.fails(1, "NO_REPLY");
    assert!(said.err.contains("run the command again"), "{}", said.err);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn output_that_cannot_be_written_is_an_error_and_a_closed_pipe_is_none() {
    let world = OperatorStore::new();
    let (server, mut client) = world.server().await;
    let id = client.create("echo", json!({ "text": "kept" })).await.unwrap();
    client.settled(&id).await;
    assert!(server.stop().await);
    for arguments in [&["task", "list"][..], &["task", "list", "--json"], &["task", "get", &id]] {
        let run_to = async |output: std::process::Stdio| {
            let mut command = tokio::process::Command::new(longhaul());
            let command = command.args(arguments).args(["--store", &world.store]).stdout(output);
            command.stderr(std::process::Stdio::piped()).spawn().unwrap().wait_with_output().await.unwrap()
        };
        let full = run_to(std::fs::File::options().write(true).open("/dev/full").unwrap().into()).await;
        let err = String::from_utf8(full.stderr).unwrap();
        assert_eq!(full.status.code(), Some(1), "{arguments:?}: {err}");
        assert!(err.contains("[OUTPUT]") && err.lines().count() == 1, "{err}");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let closed = run_to(writer.into()).await;
        assert_eq!(closed.status.code(), Some(0), "{arguments:?}: {}", String::from_utf8_lossy(&closed.stderr));
    }
}

#[tokio::test]
async fn a_server_without_tools_says_so() {
    let server = Launch::longhaul().start().await;
    server.says("clients cannot call anything").await;
    server.says("--demo").await;
    server.kill().await;
    let server = Launch::longhaul().arg("--demo").start().await;
    server.says("only this machine can connect").await;
    assert!(!server.log().contains("clients cannot call anything"), "{}", server.log());
    server.kill().await;
}

#[tokio::test]
async fn the_address_can_come_from_the_environment() {
    let listen = async |variable: &str| {
        let mut command = tokio::process::Command::new(longhaul());
        command.args(["serve", "--store", "memory:"]).env("LONGHAUL_LISTEN", variable).output().await.unwrap()
    };
    // Refused because of the address, before anything else.
    let output = listen("192.0.2.1:0").await;
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(5) && err.contains("192.0.2.1:0"), "{err}");
    assert_eq!(listen("nowhere").await.status.code(), Some(2));
}
