//! Every limit that a client can reach, reached: taken at its edge, refused past it with its own word.
//!
//! The servers run in the test's process, because the program has no flags for most of these.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use longhaul::{
    Ctx, EngineLimits, Failure, Filled, Form, JsonSchema, Limits, NoArgs, Owner, Retention, Server, TaskSupport,
    Tokens, Tool, ToolLimits,
};
use longhaul_server::stdio;
use serde_json::{Value, json};
use support::schema::Asked;
use support::{Client, Local, Trouble, VERSION, in_time};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

/// A tool that ends when it is let.
fn gated(name: &str, gate: &Arc<Semaphore>) -> Tool {
    let gate = Arc::clone(gate);
    Tool::new(name, move |_: Ctx, _: NoArgs| {
        let gate = Arc::clone(&gate);
        async move {
            gate.acquire().await?.forget();
            Ok("let through")
        }
    })
}

#[derive(serde::Deserialize, JsonSchema)]
struct Size {
    #[serde(default)]
    bytes: usize,
}

#[derive(serde::Deserialize, JsonSchema)]
struct Answered {
    ok: bool,
}

/// A tool that asks before it ends.
fn asking(name: &str) -> Tool {
    Tool::new(name, |mut ctx: Ctx, _: NoArgs| async move {
        match ctx.ask("go", Form::<Answered>::new("Go on?")).await? {
            Filled::Accepted(Answered { ok: true }) => Ok("went on"),
            _ => Err(Failure::tool("it may not")),
        }
    })
}

async fn answer(client: &mut Client, id: &str) {
    let key = client.asked(id, 1).await.remove(0);
    client.update(id, json!({ key: { "action": "accept", "content": { "ok": true } } })).await.unwrap();
}

fn is_refused(error: &Value, code: i64, word: &str) {
    assert_eq!((&error["code"], &error["data"]["code"]), (&json!(code), &json!(word)), "{error}");
    assert!(!error["message"].as_str().unwrap().is_empty());
    // What passes with time says so; a failed task does not.
    let passes = ["QUEUE_FULL", "TOO_MANY_OPEN", "TOO_MUCH_UNREAD", "TOO_MANY_IN_FLIGHT"].contains(&word);
    assert_eq!(error["data"]["retryAfterMs"].as_u64().is_some_and(|ms| ms > 0), passes, "{error}");
}

#[tokio::test]
async fn a_full_queue_refuses_and_takes_again_when_there_is_room() {
    let gate = Arc::new(Semaphore::new(0));
    let limits = ToolLimits { running_max: 1, queued_max: 2, ..ToolLimits::default() };
    let server = Local::start(Server::new("test").tool(gated("work", &gate).limits(limits))).await;
    let mut client = server.client().await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(client.create("work", json!({})).await.unwrap());
    }
    let error = client.call_error("work", json!({})).await;
    is_refused(&error, -32603, "QUEUE_FULL");
    assert!(error["message"].as_str().unwrap().contains("2 tasks"), "{error}");

    // A cancelled one in the queue makes room, and so does one that ends.
    client.cancel(&ids[2]).await.unwrap();
    ids.push(client.create("work", json!({})).await.unwrap());
    is_refused(&client.call_error("work", json!({})).await, -32603, "QUEUE_FULL");
    gate.add_permits(1);
    client.settled(&ids[0]).await;
    client.until_metric("longhaul_tasks_queued", 1.0).await;
    ids.push(client.create("work", json!({})).await.unwrap());
    gate.add_permits(3);
    for id in &ids {
        client.settled(id).await;
    }
    server.stop().await;
}

#[tokio::test]
async fn an_owner_has_so_many_open_tasks_and_another_owner_as_many_again() {
    let gate = Arc::new(Semaphore::new(0));
    let line = |owner: &str| Tokens::line(&Owner::parse(owner).unwrap(), owner);
    let tokens = Tokens::parse(&format!("{}\n{}\n", line("ada"), line("bob"))).unwrap();
    let limits = EngineLimits { open_per_owner_max: 2, ..EngineLimits::default() };
    let tools = [gated("work", &gate), asking("ask")];
    let server = Local::start(Server::new("test").tools(tools).engine_limits(limits).tokens(tokens)).await;
    let (mut ada, mut bob) = (server.client().await, server.client().await);
    ada.token = Some("ada".into());
    bob.token = Some("bob".into());
    let waits = ada.create("ask", json!({})).await.unwrap();
    ada.asked(&waits, 1).await;
    let works = ada.create("work", json!({})).await.unwrap();
    is_refused(&ada.call_error("work", json!({})).await, -32603, "TOO_MANY_OPEN");
    is_refused(&ada.call_error("ask", json!({})).await, -32603, "TOO_MANY_OPEN");
    let others = bob.create("work", json!({})).await.unwrap();
    ada.cancel(&waits).await.unwrap();
    let next = ada.create("work", json!({})).await.unwrap();
    is_refused(&ada.call_error("work", json!({})).await, -32603, "TOO_MANY_OPEN");
    gate.add_permits(3);
    ada.settled(&works).await;
    ada.settled(&next).await;
    bob.settled(&others).await;
    server.stop().await;
}

#[tokio::test]
async fn arguments_and_results_are_taken_up_to_their_last_byte() {
    let limits = ToolLimits { input_bytes_max: 40, result_bytes_max: 400, ..ToolLimits::default() };
    let make = |name: &str, support| {
        Tool::new(name, |_: Ctx, Size { bytes }: Size| async move { Ok("x".repeat(bytes)) })
            .task_support(support)
            .limits(limits.clone())
    };
    let tools = [make("task", TaskSupport::Required), make("call", TaskSupport::Forbidden)];
    let server = Local::start(Server::new("test").tools(tools)).await;
    let mut client = server.client().await;

    let padded = |bytes: usize| {
        let empty = json!({ "pad": "" }).to_string().len();
        json!({ "pad": "x".repeat(bytes - empty) })
    };
    for tool in ["task", "call"] {
        client.call(tool, padded(40)).await.unwrap();
        let error = client.call_error(tool, padded(41)).await;
        is_refused(&error, -32602, "INPUT_TOO_LARGE");
        assert!(error["message"].as_str().unwrap().contains("at most 40"), "{error}");
    }

    // How long the result is around its text is for the server to know: the edge is where it says so.
    let task = |bytes: usize| json!({ "bytes": bytes });
    let too_large = client.create("task", task(400)).await.unwrap();
    let failed = client.settled(&too_large).await;
    assert_eq!(failed.status(), "failed");
    is_refused(&failed.value["error"], -32603, "RESULT_TOO_LARGE");
    let said = failed.value["error"]["message"].as_str().unwrap();
    let around: usize = said.split(' ').find_map(|word| word.parse::<usize>().ok()).unwrap() - 400;
    for (bytes, status) in [(400 - around, "completed"), (401 - around, "failed")] {
        let id = client.create("task", task(bytes)).await.unwrap();
        assert_eq!(client.settled(&id).await.status(), status, "{bytes} bytes and {around} around them");
    }
    client.call("call", task(400 - around)).await.unwrap();
    is_refused(&client.call_error("call", task(401 - around)).await, -32603, "RESULT_TOO_LARGE");
    server.stop().await;
}

/// Says when it is dropped.
struct Dropped(mpsc::UnboundedSender<()>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

/// A tool that never ends, whatever it is told, and a way to hear that it was dropped.
fn stubborn(name: &str) -> (Tool, mpsc::UnboundedReceiver<()>) {
    let (sender, dropped) = mpsc::unbounded_channel();
    let tool = Tool::new(name, move |_: Ctx, _: NoArgs| {
        let alive = Dropped(sender.clone());
        async move {
            let _alive = alive;
            std::future::pending::<()>().await;
            Ok("never")
        }
    });
    (tool, dropped)
}

#[tokio::test]
async fn a_handler_that_runs_too_long_is_ended_and_its_worker_freed() {
    let (tool, mut dropped) = stubborn("run");
    let limits = ToolLimits { running_max: 1, grace_ms: 1, ..ToolLimits::default() };
    let tool = tool.running_time_max(Duration::from_millis(30)).limits(limits);
    let server = Local::start(Server::new("test").tool(tool)).await;
    let mut client = server.client().await;
    let ids = [client.create("run", json!({})).await.unwrap(), client.create("run", json!({})).await.unwrap()];
    for id in &ids {
        let failed = client.settled(id).await;
        assert_eq!(failed.status(), "failed");
        is_refused(&failed.value["error"], -32603, "RUNNING_TIME");
        in_time("the handler to be dropped", dropped.recv()).await.unwrap();
    }
    client.until_metric("longhaul_tasks_running", 0.0).await;
    server.stop().await;
}

#[tokio::test]
async fn a_task_that_lives_too_long_fails_even_while_it_waits_or_is_queued() {
    let gate = Arc::new(Semaphore::new(0));
    let life = Duration::from_millis(30);
    let queued = ToolLimits { running_max: 1, grace_ms: 1, ..ToolLimits::default() };
    let blocks = gated("queue", &gate).life_time_max(life).limits(queued);
    let server = Local::start(Server::new("test").tools([asking("ask").life_time_max(life), blocks])).await;
    let mut client = server.client().await;
    for tool in ["ask", "queue", "queue"] {
        let id = client.create(tool, json!({})).await.unwrap();
        let failed = client.settled(&id).await;
        assert_eq!(failed.status(), "failed", "{tool}");
        is_refused(&failed.value["error"], -32603, "LIFE_TIME");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_cancelled_handler_that_does_not_listen_is_dropped_after_its_grace() {
    let (tool, mut dropped) = stubborn("run");
    let limits = ToolLimits { running_max: 1, grace_ms: 10, ..ToolLimits::default() };
    let server = Local::start(Server::new("test").tool(tool.limits(limits))).await;
    let mut client = server.client().await;
    let id = client.create("run", json!({})).await.unwrap();
    let next = client.create("run", json!({})).await.unwrap();
    client.until_metric("longhaul_tasks_queued", 1.0).await;
    client.cancel(&id).await.unwrap();
    assert_eq!(client.get(&id).await.unwrap().status(), "cancelled", "at once, whatever the handler does");
    in_time("the handler to be dropped", dropped.recv()).await.unwrap();
    client.until_metric("longhaul_tasks_queued", 0.0).await;
    client.cancel(&next).await.unwrap();
    in_time("the next one to be dropped", dropped.recv()).await.unwrap();
    client.until_metric("longhaul_tasks_running", 0.0).await;
    server.stop().await;
}

#[tokio::test]
async fn attempts_that_wait_give_their_worker_back_up_to_the_limit() {
    let limits = ToolLimits { running_max: 1, idle_max: 1, ..ToolLimits::default() };
    let server = Local::start(Server::new("test").tool(asking("ask").limits(limits))).await;
    let mut client = server.client().await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(client.create("ask", json!({})).await.unwrap());
    }
    // The first gives its worker to the second; the second may not, so the third is not started.
    client.asked(&ids[0], 1).await;
    client.asked(&ids[1], 1).await;
    for _ in 0..100 {
        assert_eq!(client.get(&ids[2]).await.unwrap().status(), "working");
        assert_eq!(client.metric("longhaul_tasks_queued").await.to_bits(), 1.0_f64.to_bits());
    }
    for id in &ids {
        answer(&mut client, id).await;
    }
    for id in &ids {
        assert_eq!(client.settled(id).await.result_text(), "went on");
    }
    server.stop().await;
}

#[tokio::test]
async fn ordinary_calls_past_the_limit_wait_their_turn() {
    let (gate, started) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
    let (entered, count) = (Arc::new(Notify::new()), Arc::clone(&started));
    let (pass, enter) = (Arc::clone(&gate), Arc::clone(&entered));
    let tool = Tool::new("call", move |_: Ctx, _: NoArgs| {
        let (pass, enter, count) = (Arc::clone(&pass), Arc::clone(&enter), Arc::clone(&count));
        async move {
            count.fetch_add(1, Ordering::SeqCst);
            enter.notify_one();
            pass.acquire().await?.forget();
            Ok("done")
        }
    })
    .task_support(TaskSupport::Forbidden)
    .limits(ToolLimits { calls_max: 1, ..ToolLimits::default() });
    let server = Local::start(Server::new("test").tool(tool)).await;
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..2 {
        let mut client = server.client().await;
        calls.spawn(async move { client.call("call", json!({})).await.unwrap() });
    }
    in_time("a call", entered.notified()).await;
    let mut client = server.client().await;
    for _ in 0..100 {
        client.metric("longhaul_streams_open").await;
        assert_eq!(started.load(Ordering::SeqCst), 1, "the second one has begun");
    }
    gate.add_permits(2);
    while let Some(done) = in_time("a call to end", calls.join_next()).await {
        assert_eq!(done.unwrap()["content"][0]["text"], "done");
    }
    server.stop().await;
}

#[tokio::test]
async fn what_has_been_kept_long_enough_is_gone() {
    let quick = |_: Ctx, _: NoArgs| async move { Ok("done") };
    let tools = [
        Tool::new("end", quick).retention(Retention::FromEnd(20)),
        Tool::new("creation", quick).retention(Retention::FromCreation(20)),
        Tool::new("kept", quick).retention(Retention::Unlimited),
    ];
    let tokens = Tokens::parse(&Tokens::line(&Owner::parse("ada").unwrap(), "adas")).unwrap();
    let server = Local::start(Server::new("test").tools(tools).tokens(tokens)).await;
    let mut client = server.client().await;
    client.token = Some("adas".into());
    let kept = client.create("kept", json!({})).await.unwrap();
    for tool in ["end", "creation"] {
        let id = client.create(tool, json!({})).await.unwrap();
        let body = in_time("the end of a retention", async {
            loop {
                if let Err(Trouble::Refused { status: 200, body }) = client.get(&id).await {
                    return body;
                }
            }
        })
        .await;
        let error = &serde_json::from_str::<Value>(&body).unwrap()["error"];
        assert_eq!(error["code"], -32602, "{error}");
        assert_eq!(*error, client.error("tasks/get", json!({ "taskId": "never was" })).await);
        assert_eq!(client.error("tasks/cancel", json!({ "taskId": id })).await["code"], -32602);
    }
    let kept = client.settled(&kept).await;
    assert_eq!(kept.value["ttlMs"], Value::Null);
    server.stop().await;
}

#[tokio::test]
async fn a_connection_past_the_limit_waits_and_is_then_served() {
    let limits = Limits { connections_max: 2, ..Limits::default() };
    let server = Local::start(Server::new("test").limits(limits)).await;
    let (mut first, mut second) = (server.client().await, server.client().await);
    for client in [&mut first, &mut second] {
        client.request("tools/list", json!({})).await.unwrap();
    }
    // The system takes the connection and its bytes; the server does not look at them yet.
    let mut third = server.client().await;
    let waiting = tokio::spawn(async move { third.request("tools/list", json!({})).await.map(drop) });
    for _ in 0..100 {
        first.request("tools/list", json!({})).await.unwrap();
        assert!(!waiting.is_finished(), "three were served at once");
    }
    drop(second);
    in_time("the third to be served", waiting).await.unwrap().unwrap();
    server.stop().await;
}

#[tokio::test]
async fn a_message_is_taken_up_to_its_last_byte() {
    let limits = Limits { message_bytes_max: 1_000, ..Limits::default() };
    let server = Local::start(Server::new("test").limits(limits)).await;
    let mut client = server.client().await;
    for (bytes, status) in [(1_000, 200), (1_001, 413), (100_000, 413)] {
        let mut client = client.again().await;
        let (message, headers) = client.message("tools/list", json!({}));
        let message = message.to_string();
        let padded = format!("{message}{}", " ".repeat(bytes - message.len()));
        assert_eq!(client.exchange(padded, &headers).await.unwrap().status, status, "{bytes} bytes");
    }
    client.request("tools/list", json!({})).await.unwrap();
    server.stop().await;
}

#[tokio::test]
async fn a_message_far_too_large_is_refused_with_a_word_and_not_with_a_broken_connection() {
    let server = Local::start(Server::new("test")).await;
    let mut client = server.client().await;
    let (_, headers) = client.message("tools/list", json!({}));
    let answer = client.exchange(" ".repeat(50_000_000), &headers).await.unwrap();
    assert_eq!(answer.status, 413);
    server.stop().await;
}

#[tokio::test]
async fn an_id_that_is_longer_than_any_is_no_task_of_anybody() {
    let server = Local::start(Server::new("test")).await;
    let mut client = server.client().await;
    let unknown = client.error("tasks/get", json!({ "taskId": "never was" })).await;
    for bytes in [256, 257, 10_000] {
        assert_eq!(client.error("tasks/get", json!({ "taskId": "x".repeat(bytes) })).await, unknown, "{bytes} bytes");
    }
    server.stop().await;
}

/// More than the system keeps for a connection whose client does not read.
const LARGE: usize = 15_000_000;

/// A server whose tool answers with so many bytes, and a settled task of it.
async fn with_large_result(limits: Limits) -> (Local, Client, String) {
    let large = |name: &str| Tool::new(name, |_: Ctx, Size { bytes }| async move { Ok("x".repeat(bytes)) });
    let tools = [large("large"), large("call").task_support(TaskSupport::Forbidden)];
    let server = Local::start(Server::new("test").tools(tools).limits(limits)).await;
    let mut client = server.client().await;
    let id = client.create("large", json!({ "bytes": LARGE })).await.unwrap();
    // Its answer is not read here: under a tight limit that could take too long.
    client.until_metric("longhaul_tasks_running", 0.0).await;
    (server, client, id)
}

/// Asks for the task and gives the answer unread.
async fn unread(client: &mut Client, id: &str) -> impl Sized + use<> {
    let (message, headers) = client.message("tasks/get", json!({ "taskId": id }));
    let response = client.post(message.to_string(), &headers).await.unwrap();
    assert_eq!(response.status(), 200);
    response
}

async fn until_there_is_room(client: &mut Client, id: &str) {
    in_time("room for an answer", async {
        loop {
            match client.get(id).await {
                Ok(_) => break,
                Err(Trouble::Refused { status: 503, body }) => {
                    let body: Value = serde_json::from_str(&body).unwrap();
                    is_refused(&body["error"], -32603, "TOO_MUCH_UNREAD");
                }
                // Under a tight limit a reader that this machine held up for a moment is let go, too.
                Err(Trouble::Lost(_)) => *client = client.again().await,
                Err(other) => panic!("{other:?}"),
            }
        }
    })
    .await;
}

#[tokio::test]
async fn answers_that_nobody_reads_have_so_much_room_together() {
    let limits = Limits { unread_bytes_max: 20_000_000, ..Limits::default() };
    let (server, mut client, id) = with_large_result(limits).await;
    let mut other = server.client().await;
    let held = unread(&mut other, &id).await;
    match client.get(&id).await {
        Err(Trouble::Refused { status: 503, body }) => {
            is_refused(&serde_json::from_str::<Value>(&body).unwrap()["error"], -32603, "TOO_MUCH_UNREAD");
        }
        refused => panic!("{refused:?}"),
    }
    // A call that streams is told so, too: silence would look like work that goes on.
    let (mut message, headers) =
        client.message("tools/call", json!({ "name": "call", "arguments": { "bytes": LARGE } }));
    message["params"]["_meta"]["progressToken"] = json!("how far");
    let streamed = client.exchange(message.to_string(), &headers).await.unwrap();
    let last = std::str::from_utf8(&streamed.body).unwrap().lines().rfind(|line| line.starts_with("data:")).unwrap();
    let last: Value = serde_json::from_str(last.trim_start_matches("data:")).unwrap();
    assert_eq!(last["id"], message["id"]);
    is_refused(&last["error"], -32603, "TOO_MUCH_UNREAD");
    // Small answers are not held up, and the room comes back with the connection's end.
    client.request("tools/list", json!({})).await.unwrap();
    drop((held, other));
    until_there_is_room(&mut client, &id).await;
    server.stop().await;
}

#[tokio::test]
async fn a_client_that_reads_nothing_is_let_go() {
    let limits =
        Limits { unread_bytes_max: 20_000_000, write_time_max: Duration::from_millis(50), ..Limits::default() };
    let (server, mut client, id) = with_large_result(limits).await;
    let mut other = server.client().await;
    let _held = unread(&mut other, &id).await;
    until_there_is_room(&mut client, &id).await;
    server.stop().await;
}

#[tokio::test]
async fn a_quiet_stream_is_kept_alive_by_comments() {
    use http_body_util::BodyExt;
    let limits = Limits { keep_alive: Duration::from_millis(10), ..Limits::default() };
    let server = Local::start(Server::new("test").limits(limits)).await;
    let mut client = server.client().await;
    let (message, headers) = client.message("subscriptions/listen", json!({ "notifications": { "taskIds": [] } }));
    let mut body = client.post(message.to_string(), &headers).await.unwrap().into_body();
    let mut comments = 0;
    while comments < 3 {
        let frame = in_time("a comment", body.frame()).await.unwrap().unwrap().into_data().unwrap();
        comments += usize::from(frame.starts_with(b":"));
    }
    drop(body);
    server.stop().await;
}

async fn next_line(lines: &mut Lines<impl AsyncBufRead + Unpin>, asked: &Asked) -> Value {
    let line = in_time("a line from the server", lines.next_line()).await.unwrap().expect("a line");
    let message = serde_json::from_str(&line).unwrap();
    asked.hears(None, &message);
    message
}

#[tokio::test]
async fn a_stdio_client_has_so_many_requests_under_way_and_lines_so_long() {
    let store = longhaul::StoreUrl::Memory.open().unwrap();
    let started = Server::new("test").start(store).await.unwrap();
    let limits = Limits { in_flight_max: 2, message_bytes_max: 1_000, ..Limits::default() };
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let (input, output) = tokio::io::split(theirs);
    let stop = CancellationToken::new();
    let serving =
        stdio::serve(started.receiver().clone(), longhaul_server::local(), BufReader::new(input), output, limits, stop);
    let serving = tokio::spawn(serving);
    let (read, mut write) = tokio::io::split(ours);
    let mut lines = BufReader::new(read).lines();
    let asked = Asked::default();

    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let message = |id: &str, method: &str| {
        let params = json!({ "_meta": meta, "notifications": {} });
        let line = format!("{}\n", json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        asked.sends(line.as_bytes());
        line
    };
    for id in ["one", "two"] {
        write.write_all(message(id, "subscriptions/listen").as_bytes()).await.unwrap();
        let first = next_line(&mut lines, &asked).await;
        assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    }
    write.write_all(message("three", "tools/list").as_bytes()).await.unwrap();
    let refused = next_line(&mut lines, &asked).await;
    assert_eq!(refused["id"], "three");
    is_refused(&refused["error"], -32603, "TOO_MANY_IN_FLIGHT");

    // One that is cancelled makes room: the word of it is read although there is none.
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "one" } });
    write.write_all(format!("{cancel}\n").as_bytes()).await.unwrap();
    in_time("room for one more", async {
        loop {
            write.write_all(message("three", "tools/list").as_bytes()).await.unwrap();
            let answer = next_line(&mut lines, &asked).await;
            assert_eq!(answer["id"], "three");
            if answer.get("result").is_some() {
                break;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;

    let good = message("four", "tools/list");
    for (bytes, is_taken) in [(1_000, true), (1_001, false)] {
        let line = format!("{}{}\n", good.trim_end(), " ".repeat(bytes - good.trim_end().len()));
        write.write_all(line.as_bytes()).await.unwrap();
        let answer = next_line(&mut lines, &asked).await;
        assert_eq!(answer.get("result").is_some(), is_taken, "{bytes} bytes: {answer}");
    }
    write.shutdown().await.unwrap();
    let last = next_line(&mut lines, &asked).await;
    assert_eq!((&last["id"], &last["result"]["resultType"]), (&json!("two"), &json!("complete")));
    in_time("the end of the session", serving).await.unwrap().unwrap();
}
