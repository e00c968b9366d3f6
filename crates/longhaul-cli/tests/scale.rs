//! What many waiting tasks and many subtasks cost: memory, the time of a restart, and the processor time of one answer or
//! one subtask beside the same among few.
//!
//! `LONGHAUL_WAITING`, `LONGHAUL_CHILDREN` and `LONGHAUL_CALLS` set the numbers. A run prints the figures.

#[path = "kit/connection.rs"]
mod connection;
#[path = "kit/mod.rs"]
mod kit;

use std::time::{Duration, Instant};

use longhaul_testkit::{ReplyMessages, StatelessClient, number_from_environment, until};
use serde_json::json;
use tokio::task::JoinSet;

use crate::connection::{RawClient, raise_descriptors, request, resident_file_kb, resident_kb};
use crate::kit::{Launch, ServerProcess, place};

/// The default number of tasks that wait for an answer.
const WAITING: usize = 2_000;

/// The default number of children in the large family. It is a multiple of [`FEW`].
const CHILDREN: usize = 1_000;

/// The number that a large one is compared with.
const FEW: usize = 10;

/// The default number of calls of clients without tasks that wait at once.
const CALLS: usize = 100;

/// How many answers are measured.
const ANSWERS: usize = 400;

/// Clients that create tasks at the same time.
const CLIENTS: usize = 32;

async fn start(store: &std::path::Path) -> ServerProcess {
    // One owner asks for everything here.
    Launch::conformance().store(store).arg("--rate-limit").arg("1000000").start().await
}

/// The processor time of all threads of a process.
fn processor_time(pid: i32) -> Duration {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).expect("a process");
    let spent = threads.filter_map(|thread| {
        // A thread may have ended meanwhile.
        let text = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(spent.sum())
}

/// Resident memory without mapped files, whose pages the system can take back.
fn own_kb(server: &ServerProcess) -> usize {
    resident_kb(server.pid()) - resident_file_kb(server.pid())
}

/// Tasks that have asked and whose handlers are not in memory any more.
async fn create_waiting(server: &ServerProcess, count: usize) -> Vec<String> {
    let mut creating = JoinSet::new();
    for client_number in 0..CLIENTS.min(count) {
        let mut client = StatelessClient::connect(server.address()).await.unwrap();
        creating.spawn(async move {
            let mut ids = Vec::new();
            for file in (client_number..count).step_by(CLIENTS) {
                let arguments = json!({ "filename": format!("file {file}") });
                ids.push((file, client.create("confirm_delete", arguments).await.expect("a task")));
            }
            ids
        });
    }
    let mut ids: Vec<_> = creating.join_all().await.into_iter().flatten().collect();
    ids.sort_unstable();
    let mut client = StatelessClient::connect(server.address()).await.unwrap();
    until("no handler in memory", async || client.metric_of("longhaul_budget_used", "attempts").await == Some(0.0))
        .await;
    ids.into_iter().map(|(_, id)| id).collect()
}

/// Waits until a subscription shows its task with this status.
async fn until_status(changes: &mut ReplyMessages, status: &str) {
    while changes.next_of("notifications/tasks").await["params"]["status"] != status {}
}

/// Answers tasks one after the other, and returns the processor time that each took from its answer to its end.
async fn answer(server: &ServerProcess, tasks: impl IntoIterator<Item = (usize, String)>) -> Duration {
    let mut client = StatelessClient::connect(server.address()).await.unwrap();
    let (mut spent, mut count) = (Duration::ZERO, 0);
    for (file, id) in tasks {
        let question = client.asked(&id, 1).await.remove(0);
        let mut changes = client.listen(&[&id]).await;
        until_status(&mut changes, "input_required").await;
        let before = processor_time(server.pid());
        let yes = json!({ question: { "action": "accept", "content": { "confirm": true } } });
        client.update(&id, yes).await.expect("a stored answer");
        until_status(&mut changes, "completed").await;
        spent += processor_time(server.pid()).saturating_sub(before);
        count += 1;
        assert_eq!(client.get(&id).await.unwrap().result_text(), format!("file {file} is deleted."));
    }
    spent / count
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_that_wait_hold_no_memory_and_are_answered_after_a_restart() {
    let waiting = number_from_environment("LONGHAUL_WAITING", WAITING);
    let (_directory, store) = place("tasks.db");
    let server = start(&store).await;
    let mut among_few = Duration::ZERO;
    for _ in 0..ANSWERS / FEW {
        let few = create_waiting(&server, FEW).await;
        among_few += answer(&server, few.into_iter().enumerate()).await;
    }
    among_few /= u32::try_from(ANSWERS / FEW).unwrap();
    server.kill().await;

    let server = start(&store).await;
    // What the first tasks allocate for good is not counted.
    let first = create_waiting(&server, FEW).await;
    answer(&server, first.into_iter().enumerate()).await;
    let empty_kb = own_kb(&server);
    let ids = create_waiting(&server, waiting).await;
    let full_kb = own_kb(&server);
    server.kill().await;

    let began = Instant::now();
    let server = start(&store).await;
    let restart = began.elapsed();
    let restarted_kb = own_kb(&server);
    let every = waiting / ANSWERS.min(waiting);
    let among_many = answer(&server, ids.into_iter().enumerate().step_by(every)).await;
    let each = |kb: usize| kb.saturating_sub(empty_kb) * 1_024 / waiting;
    println!(
        "{waiting} waiting tasks: {empty_kb} kB without them, {full_kb} kB with them ({} bytes each), {restarted_kb} kB after \
         a restart of {restart:?} ({} bytes each); one answer takes {among_many:?} of processor time, among {FEW} tasks \
         {among_few:?}",
        each(full_kb),
        each(restarted_kb),
    );
    assert!(server.stop().await);
}

/// Families one after the other with that many children together, and the processor time of each child.
async fn families(server: &ServerProcess, children: usize, each: usize) -> Duration {
    let mut client = StatelessClient::connect(server.address()).await.unwrap();
    let before = processor_time(server.pid());
    for _ in 0..children / each {
        let id = client.create("fan_out", json!({ "children": each, "millis": 0 })).await.expect("a task");
        until_status(&mut client.listen(&[&id]).await, "completed").await;
    }
    processor_time(server.pid()).saturating_sub(before) / u32::try_from(children).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_family_ends_like_a_small_one() {
    let children = number_from_environment("LONGHAUL_CHILDREN", CHILDREN);
    let (_directory, store) = place("tasks.db");
    let server = start(&store).await;
    families(&server, FEW, FEW).await;
    let small = families(&server, children, FEW).await;
    let large = families(&server, children, children).await;
    println!("a child of {children} takes {large:?} of processor time, a child of {FEW} {small:?}");
    assert!(server.stop().await);
}

/// Commands that wait for a file, a few at a time; the other calls wait in the queue.
const GATE: &str = r#"
[tool.gate]
shell = true
command = 'while [ ! -e "$GATE" ]; do sleep 0.05; done; echo "$NUMBER passed"'
args.number = { type = "string" }
env.NUMBER = "{number}"
env.GATE = "@"
concurrency = 4

[clients_without_tasks]
patience = "1h"
"#;

/// The result of a call by a client without tasks, in a session or without one.
async fn call_without_tasks(address: std::net::SocketAddr, number: usize) -> serde_json::Value {
    let mut client = RawClient::open(address, None).await;
    let mut call = json!({ "name": "gate", "arguments": { "number": number.to_string() } });
    if number.is_multiple_of(2) {
        assert!(client.initialize().await, "a session");
        return client.ask("tools/call", &call).await;
    }
    call["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    client.ask_stateless("tools/call", "gate", request("tools/call", &call)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_of_clients_without_tasks_wait_at_once_and_are_all_answered() {
    let calls = number_from_environment("LONGHAUL_CALLS", CALLS);
    raise_descriptors();
    let (directory, store) = place("tasks.db");
    let gate = directory.path().join("gate");
    let config = directory.path().join("longhaul.toml");
    std::fs::write(&config, GATE.replace('@', gate.to_str().unwrap())).unwrap();
    let records = format!("LONGHAUL_PROCESS_DIR={}", directory.path().join("processes").display());
    let launch = Launch::longhaul().under(["env".to_owned(), records]);
    let server = launch.store(&store).arg("--config").arg(&config).start().await;
    let address = server.address();
    let mut client = StatelessClient::connect(address).await.unwrap();
    // What the first calls allocate for good is not counted.
    std::fs::write(&gate, "").unwrap();
    for first in 0..FEW {
        call_without_tasks(address, first).await;
    }
    std::fs::remove_file(&gate).unwrap();
    let empty_kb = own_kb(&server);
    let mut waiting = JoinSet::new();
    for number in 0..calls {
        waiting.spawn(async move { (number, call_without_tasks(address, number).await) });
    }
    let all = f64::from(u32::try_from(calls).unwrap());
    until("all calls as tasks", async || {
        let (running, queued) =
            (client.metric("longhaul_tasks_running").await, client.metric("longhaul_tasks_queued").await);
        running + queued >= all
    })
    .await;
    let full_kb = own_kb(&server);
    std::fs::write(&gate, "").unwrap();
    for (number, answer) in waiting.join_all().await {
        assert_eq!(answer["result"]["content"][0]["text"], format!("{number} passed"), "{answer}");
    }
    let each = full_kb.saturating_sub(empty_kb) * 1_024 / calls;
    println!("{calls} waiting calls: {empty_kb} kB without them, {full_kb} kB with them ({each} bytes each)");
    assert!(server.stop().await);
}
