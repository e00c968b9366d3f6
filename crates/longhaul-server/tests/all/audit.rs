//! The audit log matches `docs/audit.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};

use longhaul::{AUDIT_TARGET, Ctx, Failure, Form, FormAnswer, JsonSchema, NoArgs, Owner, Server, Tokens, Tool};
use longhaul_testkit::{SessionClient, TestServer};
use serde_json::{Value, json};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer as _, fmt};

/// Words that must not be in any line.
const SECRETS: [&str; 5] = ["secret-key", "secret-argument", "secret-result", "secret-answer", "secret-token"];

#[derive(serde::Deserialize, JsonSchema)]
struct TextArguments {
    text: String,
}

fn tools() -> [Tool; 4] {
    [
        Tool::new("echo", |_: Ctx, TextArguments { text }| async move { Ok(text.replace("argument", "result")) }),
        Tool::new("break", |_: Ctx, TextArguments { text }| async move {
            Err::<String, _>(Failure::protocol(-32_001, &text))
        }),
        Tool::new("wait", |ctx: Ctx, _: NoArgs| async move {
            ctx.cancelled().await;
            Err::<String, _>(Failure::tool("stopped"))
        }),
        Tool::new("ask", |mut ctx: Ctx, _: NoArgs| async move {
            match ctx.ask("go", Form::<TextArguments>::new("Go on?")).await? {
                FormAnswer::Accepted(TextArguments { text }) => Ok(text),
                _ => Err(Failure::tool("it may not")),
            }
        }),
    ]
}

#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn parsed(lines: &str) -> Vec<Value> {
    lines.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}"))).collect()
}

/// The events in `docs/audit.md`, each with its fields.
fn documented() -> BTreeMap<String, BTreeSet<String>> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/audit.md");
    let page = std::fs::read_to_string(page).unwrap();
    let words = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    let rows = page.lines().filter_map(|line| {
        let cells: Vec<&str> = line.split('|').collect();
        let event = words(cells.get(1)?).pop()?;
        event.contains('.').then(|| (event, words(cells[3]).into_iter().collect()))
    });
    rows.collect()
}

/// Causes every event of the audit log, in both eras.
async fn do_everything(server: &TestServer) {
    let mut ada = server.client().await.with_token("secret-token-audited-ada");
    let text = json!({ "text": "secret-argument" });
    let id = ada.create("echo", text.clone()).await.unwrap();
    ada.settled(&id).await;
    let broken = ada.create("break", text.clone()).await.unwrap();
    ada.settled(&broken).await;
    let waits = ada.create("wait", json!({})).await.unwrap();
    ada.cancel(&waits).await.unwrap();
    ada.cancel(&waits).await.unwrap();
    let answer = json!({ "action": "accept", "content": { "text": "secret-answer" } });
    let keyed = json!({ "name": "echo", "arguments": text, "_meta": { "longhaul/idempotency-key": "secret-key" } });
    for _ in 0..3 {
        ada.send("tools/call", keyed.clone()).await;
    }
    let asks = ada.create("ask", json!({})).await.unwrap();
    let key = ada.asked(&asks, 1).await.remove(0);
    ada.update(&asks, json!({ key: answer })).await.unwrap();
    ada.settled(&asks).await;
    ada.call_error("no such tool", text.clone()).await;

    let bob = SessionClient::new(server).with_token("secret-token-audited-bob");
    let bob = bob.initialize("2025-11-25", json!({ "elicitation": {} })).await;
    bob.error("tasks/get", json!({ "taskId": id })).await;
    let asks = bob.create("ask", json!({})).await;
    let mut result = bob.send("tasks/result", json!({ "taskId": asks })).await;
    let question = result.next_of("elicitation/create").await;
    bob.respond(&question, answer).await;
    result.last().await;
    let waits = bob.create("wait", json!({})).await;
    bob.result("tasks/cancel", json!({ "taskId": waits })).await;
    bob.result("tasks/list", json!({})).await;
    bob.result("tasks/delete", json!({ "taskId": waits })).await;
    bob.call("echo", text.clone()).await;
    bob.error("tools/call", json!({ "name": "break", "arguments": text })).await;
    let message = bob.message("tools/call", json!({ "name": "wait", "arguments": {} }));
    let mut call = bob.post(message.to_string()).await;
    ada.until_metric("longhaul_calls_running", 1.0).await;
    bob.notify("notifications/cancelled", json!({ "requestId": message["id"] })).await;
    call.rest().await;
    ada.until_metric("longhaul_calls_running", 0.0).await;
    ada.capabilities = json!({ "elicitation": {} });
    assert_eq!(ada.call("ask", json!({})).await.unwrap()["resultType"], "input_required");

    let mut unknown = server.client().await.with_token("secret-token-of-nobody");
    unknown.get(&id).await.unwrap_err();
    let mut lost = bob.clone();
    lost.session = Some("none of ours".into());
    assert_eq!(lost.send("ping", json!({})).await.status, 404);
}

#[tokio::test]
async fn the_log_is_what_its_page_says_and_holds_no_secret() {
    // Other tests in this process write to the same log, for other owners.
    let written = Written::default();
    let objects = fmt::layer().json().flatten_event(true).with_level(false).with_target(false);
    let wanted = Targets::new().with_target(AUDIT_TARGET, LevelFilter::INFO);
    let lines = objects.with_writer({
        let written = written.clone();
        move || written.clone()
    });
    tracing_subscriber::registry().with(lines.with_filter(wanted)).init();

    let line = |owner: &str| Tokens::line(&Owner::parse(owner).unwrap(), &format!("secret-token-{owner}"));
    let tokens = Tokens::parse(&format!("{}\n{}\n", line("audited-ada"), line("audited-bob"))).unwrap();
    // A task that is open at the shutdown of the server fails with a Longhaul code.
    let limits = longhaul::EngineLimits::default().drain_ms(1);
    let stubborn = Tool::new("stubborn", |_: Ctx, _: NoArgs| async move {
        std::future::pending::<()>().await;
        Ok("never")
    });
    let server = Server::new("test").tools(tools()).tool(stubborn).tokens(tokens).engine_limits(limits).no_tickets();
    let server = TestServer::listen(server).await;
    do_everything(&server).await;
    let mut ada = server.client().await.with_token("secret-token-audited-ada");
    ada.create("stubborn", json!({})).await.unwrap();
    server.stop().await;

    let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
    for secret in SECRETS {
        assert!(!text.contains(secret), "{secret} in\n{text}");
    }
    let mut seen: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let lines = parsed(&text);
    for line in &lines {
        let fields = line.as_object().unwrap().keys().filter(|field| !["timestamp", "event"].contains(&field.as_str()));
        seen.entry(line["event"].as_str().unwrap().to_owned()).or_default().extend(fields.cloned());
    }
    assert_eq!(seen, documented());

    let is = |line: &Value, fields: Value| fields.as_object().unwrap().iter().all(|(name, value)| line[name] == *value);
    let has = |fields: Value| assert!(lines.iter().any(|line| is(line, fields.clone())), "no {fields} in\n{text}");
    has(json!({ "event": "task.created", "owner": "audited-ada", "tool": "echo", "generation": "ext2026" }));
    has(json!({ "event": "task.created", "owner": "audited-bob", "tool": "ask", "generation": "core2025" }));
    let repeated = json!({ "event": "task.read", "owner": "audited-ada", "tool": "echo", "method": "tools/call" });
    let repeated: Vec<_> = lines.iter().filter(|line| is(line, repeated.clone())).collect();
    assert_eq!(repeated.len(), 2);
    let created = json!({ "event": "task.created", "task": repeated[0]["task"] });
    assert_eq!(lines.iter().filter(|line| is(line, created.clone())).count(), 1, "created once");
    has(json!({ "event": "task.settled", "owner": "audited-ada", "tool": "echo", "status": "completed" }));
    has(
        json!({ "event": "task.settled", "owner": "audited-ada", "tool": "break", "status": "failed", "error": -32001 }),
    );
    has(json!({ "event": "task.settled", "tool": "stubborn", "status": "failed", "code": "CRASH_RECOVERY" }));
    has(json!({ "event": "task.settled", "owner": "audited-bob", "tool": "wait", "status": "cancelled" }));
    has(json!({ "event": "task.cancelled", "owner": "audited-ada", "changed": false }));
    has(json!({ "event": "task.read", "owner": "audited-bob", "method": "tasks/result", "status": "completed" }));
    has(json!({ "event": "task.answered", "owner": "audited-bob", "method": "elicitation/create" }));
    has(json!({ "event": "task.answered", "owner": "audited-ada", "method": "tasks/update" }));
    has(json!({ "event": "call.started", "owner": "audited-bob", "tool": "wait", "generation": "core2025" }));
    for (owner, tool, status) in [
        ("audited-bob", "echo", "completed"),
        ("audited-bob", "break", "failed"),
        ("audited-bob", "wait", "abandoned"),
        ("audited-ada", "ask", "asks"),
    ] {
        has(json!({ "event": "call.ended", "owner": owner, "tool": tool, "status": status, "method": "tools/call" }));
    }
    has(json!({ "event": "request.refused", "owner": "audited-bob", "method": "tasks/get", "code": "NOT_FOUND" }));
    has(json!({ "event": "request.refused", "owner": "audited-ada", "method": "tools/call", "tool": "no such tool" }));
    has(json!({ "event": "request.refused", "owner": "audited-bob", "http_status": 404 }));
    let unknown = |line: &&Value| line["http_status"] == 401;
    assert_eq!(lines.iter().find(unknown).unwrap().get("owner"), None);
}
