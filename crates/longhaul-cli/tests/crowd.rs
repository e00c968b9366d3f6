//! Thousands of clients at once, each with a session, a stream, and a request that waits for the result of a task.
//! All get their results when the tasks end, and the server has freed everything when they are gone.
//!
//! `LONGHAUL_CROWD` sets the number of clients. A run prints the memory and the descriptors that they take.

#[path = "kit/connection.rs"]
mod connection;
#[path = "kit/mod.rs"]
mod kit;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use longhaul_testkit::{StatelessClient, in_time, names, number_from_environment, until};
use serde_json::json;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

use crate::connection::{RawClient, message, raise_descriptors, request, resident_kb};
use crate::kit::{Launch, ServerProcess};

/// The default number of clients.
const CROWD: usize = 5_000;

/// Clients that connect at the same time.
const ARRIVING: usize = 64;

/// Clients that answer the questions of the tasks.
const HOSTS: usize = 8;

/// The longest time for the whole test. No test measures times with it.
const PATIENCE: Duration = Duration::from_secs(600);

/// One client: a session, its stream, a task.
struct Member {
    number: usize,
    task: String,
    hears: Incoming,
    client: RawClient,
}

async fn arrive(address: SocketAddr, number: usize) -> Member {
    let mut client = RawClient::open(address, None).await;
    assert!(client.initialize().await, "a session");
    let call = json!({ "name": "confirm_delete", "arguments": { "filename": number.to_string() }, "task": {} });
    let made = client.ask("tools/call", &call).await;
    let task = made["result"]["task"]["taskId"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned();
    let stream = client.send("GET", &[], String::new()).await.expect("a stream");
    assert_eq!(stream.status(), 200);
    let mut hears = stream.into_body();
    hears.frame().await.expect("a first event").expect("a stream that begins");
    Member { number, task, hears, client }
}

fn descriptors(server: &ServerProcess) -> usize {
    names(std::path::Path::new(&format!("/proc/{}/fd", server.pid()))).len()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_is_answered_when_its_tasks_end_and_leaves_nothing_behind() {
    let crowd = number_from_environment("LONGHAUL_CROWD", CROWD);
    raise_descriptors();
    tokio::time::timeout(PATIENCE, come_and_go(crowd)).await.expect("all of it, at some time");
}

/// The server, started by a shell that sets the limit of open files.
fn with_open_files(limit: &str) -> Launch {
    Launch::conformance().under(["sh", "-c", &format!(r#"ulimit {limit} && exec "$0" "$@""#)])
}

/// This many connections, each of which has got a response.
async fn connected(server: &ServerProcess, count: usize) -> Vec<StatelessClient> {
    let mut clients = Vec::new();
    for _ in 0..count {
        let mut client = StatelessClient::connect(server.address()).await.unwrap();
        client.request("tools/list", json!({})).await.unwrap();
        clients.push(client);
    }
    clients
}

#[tokio::test(flavor = "multi_thread")]
async fn the_usual_limit_of_open_files_is_not_the_servers() {
    let server = with_open_files("-Sn 64").start().await;
    let clients = connected(&server, 200).await;
    assert_eq!(clients.len(), 200);
    assert!(!server.log().contains("could not accept"), "{}", server.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn where_open_files_are_few_the_store_still_has_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let server = with_open_files("-n 136").store(&directory.path().join("tasks.db")).start().await;
    server.says("reduces the number of connections").await;
    // Eight connections fit, and one owner gets three quarters of them. Two more that send nothing have no owner.
    let mut clients = connected(&server, 6).await;
    let silent = [RawClient::open(server.address(), None).await, RawClient::open(server.address(), None).await];
    // One more takes the place of a silent one, and is refused because its owner has its share.
    let mut late = StatelessClient::connect(server.address()).await.unwrap();
    assert!(late.request("tools/list", json!({})).await.is_err(), "one more was served");
    for count in 0..50 {
        let id = clients[count % 6].create("echo", json!({ "text": "kept" })).await.unwrap();
        assert_eq!(clients[0].settled(&id).await.result_text(), "kept");
    }
    clients.pop();
    let address = server.address();
    until("one more to be served", async || {
        StatelessClient::connect(address).await.unwrap().request("tools/list", json!({})).await.is_ok()
    })
    .await;
    drop(silent);
    assert!(!server.log().contains("could not accept"), "{}", server.log());
}

/// Sessions whose clients have left, and the waits that each of them has left behind.
const AWAY: usize = 250;
const WAITS: usize = 4;

#[tokio::test(flavor = "multi_thread")]
async fn waits_that_clients_have_left_keep_no_copies_of_a_large_result() {
    raise_descriptors();
    let server = Launch::conformance().start().await;
    let address = server.address();
    let mut host = StatelessClient::connect(address).await.unwrap();
    let name = "x".repeat(250_000);
    let task = host.create("confirm_delete", json!({ "filename": name })).await.unwrap();
    let key = host.asked(&task, 1).await.remove(0);
    let mut waiting = JoinSet::new();
    for _ in 0..AWAY {
        let task = task.clone();
        waiting.spawn(async move {
            let mut client = RawClient::open(address, None).await;
            assert!(client.initialize().await, "a session");
            let params = json!({ "taskId": task });
            for id in 1..=WAITS {
                let body = json!({ "jsonrpc": "2.0", "id": id, "method": "tasks/result", "params": params });
                let answer = client.again().await.send("POST", &[], body.to_string()).await.expect("a stream");
                // The response to a long wait is a stream, whose head is sent at once.
                assert_eq!(answer.status(), 200);
            }
        });
    }
    waiting.join_all().await;
    host.until_metric("longhaul_streams_open", 0.0).await;
    let before = resident_kb(server.pid());
    host.update(&task, json!({ key: { "action": "accept", "content": { "confirm": true } } })).await.unwrap();
    host.settled(&task).await;
    // What follows the task ends with it.
    #[allow(clippy::cast_precision_loss, reason = "they are few")]
    let waits = (AWAY * WAITS) as f64;
    in_time("the end of what follows the task", async { while host.metric("longhaul_session_jobs").await > waits {} })
        .await;
    let after = resident_kb(server.pid());
    println!("{waits} waits without a connection: {before} kB before the task has ended, {after} kB after");
    assert!(after < before + 50_000, "{before} kB, then {after} kB");
    assert!(server.stop().await);
}

async fn come_and_go(crowd: usize) {
    let server = Launch::conformance().start().await;
    let address = server.address();
    let mut host = StatelessClient::connect(address).await.unwrap();
    // Sends a request, so that its own connection is in the first count.
    host.until_metric("longhaul_sessions", 0.0).await;
    let before = (resident_kb(server.pid()), descriptors(&server));

    let door = Arc::new(Semaphore::new(ARRIVING));
    let mut arriving = JoinSet::new();
    for number in 0..crowd {
        let door = Arc::clone(&door);
        arriving.spawn(async move {
            let _place = door.acquire_owned().await;
            arrive(address, number).await
        });
    }
    let members = arriving.join_all().await;
    #[allow(clippy::cast_precision_loss, reason = "a crowd is small")]
    let count = crowd as f64;
    host.until_metric("longhaul_sessions", count).await;
    host.until_metric("longhaul_streams_open", count).await;
    let listening = resident_kb(server.pid());

    let (begins, mut first_event_id) = mpsc::unbounded_channel();
    let mut waiting = JoinSet::new();
    for member in &members {
        let (number, task) = (member.number, member.task.clone());
        let mut client = member.client.again().await;
        let begins = begins.clone();
        waiting.spawn(async move {
            let result = request("tasks/result", &json!({ "taskId": task }));
            let answer = client.send("POST", &[], result).await;
            begins.send(()).expect("the receiver of the count");
            (number, message(answer).await)
        });
    }
    // The response to a long wait is a stream, whose head is sent at once.
    for _ in 0..crowd {
        first_event_id.recv().await.expect("a call that waits");
    }
    host.until_metric("longhaul_streams_open", 2.0 * count).await;
    let blocked = resident_kb(server.pid());

    // A few more connections get responses, too.
    let key = host.asked(&members[0].task, 1).await.remove(0);
    let yes = json!({ key: { "action": "accept", "content": { "confirm": true } } });
    let mut ending = JoinSet::new();
    for part in members.chunks(crowd.div_ceil(HOSTS)) {
        let tasks: Vec<String> = part.iter().map(|member| member.task.clone()).collect();
        let (mut host, yes) = (host.again().await, yes.clone());
        ending.spawn(async move {
            for task in tasks {
                host.update(&task, yes.clone()).await.unwrap();
            }
        });
    }
    ending.join_all().await;
    let mut answered = 0;
    while let Some(ended) = waiting.join_next().await {
        let (number, answer) = ended.expect("an answer");
        assert_eq!(answer["result"]["content"][0]["text"], json!(format!("{number} is deleted.")), "{answer}");
        answered += 1;
    }
    assert_eq!(answered, crowd);
    host.until_metric("longhaul_streams_open", count).await;

    // Half of the clients end their sessions. The others only close their connections.
    let mut leaving = JoinSet::new();
    for member in members {
        let door = Arc::clone(&door);
        leaving.spawn(async move {
            let _place = door.acquire_owned().await;
            let Member { number, hears, client, .. } = member;
            let hears = (number % 2 == 0).then_some(hears);
            let goodbye = client.again().await.send("DELETE", &[], String::new()).await;
            assert_eq!(goodbye.expect("a response").status(), 204);
            if let Some(hears) = hears {
                hears.collect().await.expect("a stream that ends");
            }
        });
    }
    leaving.join_all().await;
    for gauge in ["longhaul_sessions", "longhaul_session_jobs", "longhaul_streams_open"] {
        host.until_metric(gauge, 0.0).await;
    }
    in_time("as many descriptors as before", async {
        while descriptors(&server) > before.1 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let after = resident_kb(server.pid());
    let each = |more: usize, less: usize| more.saturating_sub(less) * 1_024 / crowd;
    println!(
        "{crowd} sessions: {} kB at first, {listening} kB with their streams and tasks ({} bytes each), {blocked} kB with \
         their blocked calls ({} bytes each), {after} kB when they had left",
        before.0,
        each(listening, before.0),
        each(blocked, listening),
    );
    assert!(server.stop().await);
}
