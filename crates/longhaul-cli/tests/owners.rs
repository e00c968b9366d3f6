//! One owner does everything at once that takes memory, workers and places from others. The other owner works on and
//! notices nothing: no request of it is refused.
//!
//! The attacker is a process of its own with the lowest priority: in real life it has a machine of its own, and here it must
//! not take processor time from the other owner's client, whose latencies are measured.
//!
//! `LONGHAUL_ATTACK_SECONDS` sets the duration. A run prints the latencies of the other owner without and with the attack,
//! and the largest memory of the server.

#[path = "kit/connection.rs"]
mod connection;
#[path = "kit/mod.rs"]
mod kit;

use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use longhaul::{Owner, Tokens};
use longhaul_testkit::{StatelessClient, number_from_environment, stateless_message, tasks_and_forms, until};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::connection::{RawClient, raise_descriptors, request, resident_file_kb, resident_kb};
use crate::kit::{Launch, place};

/// The default duration of the attack.
const SECONDS: u64 = 60;

/// The most memory that the server may take, in KB.
const MEMORY_KB_MAX: usize = 512 << 10;

/// Latencies of the owner that works on.
#[derive(Default)]
struct Latencies(Vec<Duration>);

impl Latencies {
    fn percentile(&mut self, percent: usize) -> Duration {
        self.0.sort_unstable();
        self.0[(self.0.len() - 1) * percent / 100]
    }
}

/// One round of ordinary work: a task, a question and its answer, an ordinary call, a session that waits for a result.
async fn work(client: &mut StatelessClient, address: SocketAddr, token: &str) {
    let id = client.create("echo", json!({ "text": "mine" })).await.expect("a task");
    assert_eq!(client.settled(&id).await.result_text(), "mine");

    let id =
        client.create("slow_compute", json!({ "seconds": 0, "label": "quick" })).await.expect("a place in the queue");
    client.settled(&id).await;

    let id = client.create("confirm_delete", json!({ "filename": "mine" })).await.expect("a task that asks");
    let key = client.asked(&id, 1).await.remove(0);
    let yes = json!({ key: { "action": "accept", "content": { "confirm": true } } });
    client.update(&id, yes).await.expect("a stored answer");
    assert_eq!(client.settled(&id).await.result_text(), "mine is deleted.");

    let call = client.call("greet", json!({ "name": "Ada" })).await.expect("an ordinary call");
    assert!(call["content"].is_array(), "{call}");

    let mut session = RawClient::open(address, Some(token)).await;
    assert!(session.initialize().await, "a session");
    let call = json!({ "name": "big_result", "arguments": { "bytes": 100_000 }, "task": {} });
    let made = session.ask("tools/call", &call).await;
    let task = made["result"]["task"]["taskId"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned();
    let result = session.ask("tasks/result", &json!({ "taskId": task })).await;
    assert!(result["result"]["content"].is_array(), "{}", result["error"]);
    session.send("DELETE", &[], String::new()).await.expect("the end of the session");
}

async fn work_for(time: Duration, address: SocketAddr, token: &str) -> Latencies {
    let mut client = StatelessClient::connect(address).await.unwrap().with_token(token);
    let (begin, mut latencies) = (Instant::now(), Latencies::default());
    while begin.elapsed() < time {
        let round = Instant::now();
        work(&mut client, address, token).await;
        latencies.0.push(round.elapsed());
    }
    latencies
}

/// Counts what the attack did, so that a test without an attack does not pass.
#[derive(Default)]
struct Counts {
    done: AtomicU64,
    refused: AtomicU64,
}

impl Counts {
    fn add(&self, answer: &Value) {
        let counter = if answer.get("error").is_some() { &self.refused } else { &self.done };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

fn stateless(method: &str, params: Value) -> String {
    stateless_message(&json!(1), method, params, &tasks_and_forms()).to_string()
}

/// Everything that takes something away from other owners, at once.
async fn attack(address: SocketAddr, token: &str, stop: CancellationToken) -> Vec<(&'static str, Arc<Counts>)> {
    let mut all = JoinSet::new();
    let mut kinds = Vec::new();
    let mut start = |name: &'static str, times: usize, kind: Kind| {
        let counts = Arc::new(Counts::default());
        kinds.push((name, Arc::clone(&counts)));
        for _ in 0..times {
            let (token, stop, counts) = (token.to_owned(), stop.clone(), Arc::clone(&counts));
            all.spawn(async move {
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = repeat(kind, address, &token, &counts) => {}
                }
            });
        }
    };
    start("ordinary calls that do not end", 300, Kind::EndlessCall);
    start("tasks that are never answered", 4, Kind::UnansweredTask);
    start("queued tasks", 4, Kind::QueuedTask);
    start("results that are not read", 60, Kind::UnreadResult);
    start("sessions with abandoned waits", 8, Kind::AbandonedWait);
    start("lookups of missing tasks", 2, Kind::MissingTask);
    while all.join_next().await.is_some() {}
    kinds
}

#[derive(Clone, Copy)]
enum Kind {
    EndlessCall,
    UnansweredTask,
    QueuedTask,
    UnreadResult,
    AbandonedWait,
    MissingTask,
}

async fn repeat(kind: Kind, address: SocketAddr, token: &str, counts: &Counts) {
    loop {
        let mut client = RawClient::open(address, Some(token)).await;
        match kind {
            Kind::EndlessCall => {
                let call = json!({ "name": "slow_compute", "arguments": { "seconds": 1_000 } });
                let message = stateless_message(&json!(1), "tools/call", call, &json!({})).to_string();
                counts.done.fetch_add(1, Ordering::Relaxed);
                counts.add(&client.ask_stateless("tools/call", "slow_compute", message).await);
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            Kind::UnansweredTask => {
                let call = json!({ "name": "confirm_delete", "arguments": { "filename": "x" } });
                for _ in 0..200 {
                    let message = stateless("tools/call", call.clone());
                    counts.add(&client.ask_stateless("tools/call", "confirm_delete", message).await);
                }
            }
            Kind::QueuedTask => {
                let call = json!({ "name": "slow_compute", "arguments": { "seconds": 0.05 } });
                for _ in 0..200 {
                    let message = stateless("tools/call", call.clone());
                    counts.add(&client.ask_stateless("tools/call", "slow_compute", message).await);
                }
            }
            Kind::UnreadResult => {
                let call = json!({ "name": "big_result", "arguments": { "bytes": 2 << 20 } });
                let made = client.ask_stateless("tools/call", "big_result", stateless("tools/call", call)).await;
                counts.add(&made);
                let Some(task) = made["result"]["taskId"].as_str() else { continue };
                tokio::time::sleep(Duration::from_millis(500)).await;
                let get = stateless("tasks/get", json!({ "taskId": task }));
                let unread = client.send_stateless("tasks/get", task, get).await;
                // The connection stays open, and its response unread.
                tokio::time::sleep(Duration::from_secs(20)).await;
                drop(unread);
            }
            Kind::AbandonedWait => {
                if !client.initialize().await {
                    counts.refused.fetch_add(1, Ordering::Relaxed);
                    continue;
                }
                let call = json!({ "name": "big_result", "arguments": { "bytes": 250_000 }, "task": {} });
                let made = client.ask("tools/call", &call).await;
                counts.add(&made);
                let Some(task) = made["result"]["task"]["taskId"].as_str() else { continue };
                for _ in 0..4 {
                    let wait = request("tasks/result", &json!({ "taskId": task }));
                    drop(client.again().await.send("POST", &[], wait).await);
                }
            }
            Kind::MissingTask => {
                for number in 0..500 {
                    let id = format!("missing-{number}");
                    let get = stateless("tasks/get", json!({ "taskId": id }));
                    counts.add(&client.ask_stateless("tasks/get", &id, get).await);
                }
            }
        }
    }
}

/// The address and the token of the attack, for the process that carries it out.
const ATTACK: &str = "LONGHAUL_ATTACK";

/// The process of the attacker. It ends when its standard input does.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "is started by the other test"]
async fn attacker() {
    let Ok(attack_on) = std::env::var(ATTACK) else { return };
    let (address, token) = attack_on.split_once(' ').expect("an address and a token");
    raise_descriptors();
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    tokio::spawn(async move {
        tokio::io::stdin().read_to_end(&mut Vec::new()).await.expect("the end of the input");
        stopped.cancel();
    });
    for (kind, counts) in attack(address.parse().unwrap(), token, stop).await {
        let (done, refused) = (counts.done.load(Ordering::Relaxed), counts.refused.load(Ordering::Relaxed));
        eprintln!("{kind}: {done} accepted, {refused} refused");
        assert!(done + refused > 0, "{kind}: there was no attack");
    }
}

fn start_attacker(address: SocketAddr, token: &str) -> Child {
    Command::new("nice")
        .args(["-n", "19"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "attacker", "--ignored", "--nocapture"])
        .env(ATTACK, format!("{address} {token}"))
        .stdin(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("the program nice")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_that_takes_everything_takes_nothing_from_another() {
    let seconds = number_from_environment("LONGHAUL_ATTACK_SECONDS", SECONDS);
    raise_descriptors();
    let (directory, file) = place("tokens");
    let [attacker, victim] = ["mallory", "bob"].map(|name| format!("token-of-{name}-which-is-long-enough"));
    let line = |name: &str, token: &str| Tokens::line(&Owner::parse(name).unwrap(), token);
    std::fs::write(&file, format!("{}\n{}\n", line("mallory", &attacker), line("bob", &victim))).unwrap();
    let store = directory.path().join("tasks.db");
    let server = Launch::conformance().store(&store).arg("--token-file").arg(&file).start().await;
    let address = server.address();

    let mut alone = work_for(Duration::from_secs(seconds.div_ceil(4)), address, &victim).await;
    let mut attacker = start_attacker(address, &attacker);
    let (mut memory_kb, mut files_kb, begin) = (0, 0, Instant::now());
    let working = tokio::spawn({
        let victim = victim.clone();
        async move { work_for(Duration::from_secs(seconds), address, &victim).await }
    });
    while !working.is_finished() && begin.elapsed() < Duration::from_secs(600 + seconds) {
        memory_kb = memory_kb.max(resident_kb(server.pid()));
        files_kb = files_kb.max(resident_file_kb(server.pid()));
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let mut during = working.await.expect("no request of the other owner is refused");
    drop(attacker.stdin.take());
    assert!(attacker.wait().await.unwrap().success(), "the attack was not carried out");
    eprintln!(
        "rounds: {} alone, {} during the attack; p50 {:?} and {:?}, p99 {:?} and {:?}; memory at most {} MB, mapped \
         files at most {} MB",
        alone.0.len(),
        during.0.len(),
        alone.percentile(50),
        during.percentile(50),
        alone.percentile(99),
        during.percentile(99),
        memory_kb >> 10,
        files_kb >> 10,
    );
    assert!(memory_kb <= MEMORY_KB_MAX, "the server took {memory_kb} KB");
    let mut client = StatelessClient::connect(address).await.unwrap().with_token(&victim);
    for resource in ["calls", "unread_bytes"] {
        until(&format!("nothing of {resource} in use"), async || {
            client.metric_of("longhaul_budget_used", resource).await == Some(0.0)
        })
        .await;
    }
}
