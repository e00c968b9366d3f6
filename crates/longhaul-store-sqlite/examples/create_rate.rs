//! How many durable creations a second go through the store, beside what rusqlite does alone with the same rows; and
//! how long it takes to read one task of many.
//!
//! `cargo run --release -p longhaul-store-sqlite --example create_rate [TASKS] [CALLERS]`

// Rates are printed, not counted with.
#![allow(clippy::cast_precision_loss)]

use std::hint::black_box;
use std::path::Path;
use std::sync::mpsc;
use std::time::Instant;

use longhaul_store::embedded::Reader;
use longhaul_store::{NewTask, Store, SystemClock};
use longhaul_store_sqlite::{SqliteOptions, open, open_read_only};
use longhaul_task::transition::{Create, Settle};
use longhaul_task::{Event, Json, NodeId, Outcome, Owner, Policy, Retention, TaskId, TaskKey, Timestamp, ToolRef};
use rusqlite::{Connection, TransactionBehavior, params};
use tempfile::TempDir;
use tokio::sync::oneshot;

const SCHEMA: &str = include_str!("../src/schema/0001_tasks.sql");
const PRAGMAS: &str = "PRAGMA journal_mode = wal; PRAGMA synchronous = full; PRAGMA cache_size = -4096;
  PRAGMA mmap_size = 1073741824; PRAGMA temp_store = memory; PRAGMA wal_autocheckpoint = 4000;";
const INSERT_TASK: &str = "INSERT INTO task (owner, id, depth, children, ordinal, tool, version, origin, on_crash,
    attempts_max, backoff_ms, backoff_ms_max, running_ms_max, life_ms_max, retention_from_creation_ms, created_at,
    updated_at, revision, fence, attempt, spent, questions_asked, phase, node, run_since, due_at)
  VALUES (?1, ?2, 0, 0, 0, 'echo', '1', 'ext2026', 'fail', 5, 1000, 60000, 86400000, 604800000, 3600000, ?3, ?3, 1, 1, 1, 0, 0,
    'running', ?4, ?3, ?3 + 86400000)";
const INSERT_INPUT: &str = "INSERT INTO input (owner, id, body) VALUES (?1, ?2, ?3)";
const INPUT: &str = r#"{"text":"hello there, this is a small input"}"#;
const BATCH_MAX: usize = 1_024;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let tasks = arguments.next().transpose()?.unwrap_or(50_000);
    let callers = arguments.next().transpose()?.unwrap_or(128);
    println!("{tasks} tasks, {callers} callers at once; creations a second");
    let mut rates = [Vec::new(), Vec::new()];
    for round in 1..=5 {
        let (plain, ours) = (TempDir::new()?, TempDir::new()?);
        let plain = rusqlite_alone(&plain.path().join("tasks.db"), tasks, callers).await?;
        let ours = the_store(&ours.path().join("tasks.db"), tasks, callers).await?;
        println!("round {round}: rusqlite alone {plain:.0}, the store {ours:.0}, ratio {:.2}", ours / plain);
        rates[0].push(plain);
        rates[1].push(ours);
    }
    let [plain, ours] = rates.map(median);
    println!("median: rusqlite alone {plain:.0}, the store {ours:.0}, ratio {:.2}", ours / plain);
    let directory = TempDir::new()?;
    let path = directory.path().join("tasks.db");
    let settled_rate = settle_all(&path, tasks, callers).await?;
    println!("created and settled: {settled_rate:.0} a second; file {} MiB", path.metadata()?.len() >> 20);
    println!("a read of one settled task from the file: {:.2} µs", read_us(&path, tasks)?);
    Ok(())
}

/// A plain program: one writer that commits whatever is waiting, and nothing else.
async fn rusqlite_alone(path: &Path, tasks: u64, callers: u64) -> Result<f64, Box<dyn std::error::Error>> {
    let mut connection = Connection::open(path)?;
    connection.execute_batch(PRAGMAS)?;
    connection.execute_batch(SCHEMA)?;
    let (queue, waiting) = mpsc::channel::<(u64, oneshot::Sender<()>)>();
    let writer = std::thread::spawn(move || -> rusqlite::Result<()> {
        let mut batch = Vec::with_capacity(BATCH_MAX);
        while let Ok(first) = waiting.recv() {
            batch.push(first);
            batch.extend(waiting.try_iter().take(BATCH_MAX - 1));
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for (n, _) in &batch {
                let (key, node) = (key(*n), node().to_string());
                let (owner, id) = (key.owner.as_str(), key.id.as_str());
                let now = i64::try_from(now_ms()).unwrap_or_default();
                transaction.prepare_cached(INSERT_TASK)?.execute(params![owner, id, now, node])?;
                transaction.prepare_cached(INSERT_INPUT)?.execute(params![owner, id, INPUT])?;
            }
            transaction.commit()?;
            for (_, acknowledge) in batch.drain(..) {
                acknowledge.send(()).ok();
            }
        }
        Ok(())
    });
    let started = Instant::now();
    each(tasks, callers, |n| {
        let queue = queue.clone();
        async move {
            let (acknowledge, acknowledged) = oneshot::channel();
            queue.send((n, acknowledge)).expect("the writer lives");
            acknowledged.await.expect("the writer lives");
        }
    })
    .await;
    let rate = per_second(tasks, started);
    drop(queue);
    writer.join().expect("the writer does not panic")?;
    Ok(rate)
}

async fn the_store(path: &Path, tasks: u64, callers: u64) -> Result<f64, Box<dyn std::error::Error>> {
    let store = open(path, &SqliteOptions::default(), SystemClock)?;
    let started = Instant::now();
    each(tasks, callers, |n| {
        let store = store.clone();
        async move {
            store.create(new_task(n)).await.expect("there is room");
        }
    })
    .await;
    let rate = per_second(tasks, started);
    store.close().await;
    Ok(rate)
}

async fn settle_all(path: &Path, tasks: u64, callers: u64) -> Result<f64, Box<dyn std::error::Error>> {
    let store = open(path, &SqliteOptions::default(), SystemClock)?;
    let started = Instant::now();
    each(tasks, callers, |n| {
        let store = store.clone();
        async move {
            let task = store.create(new_task(n)).await.expect("there is room").task;
            let outcome = Outcome::Result { body: Json::from_text(INPUT), is_error: false };
            let settle = Event::Settle(Settle { fence: task.fence, outcome });
            store.apply(&task.key, settle).await.expect("it runs");
        }
    })
    .await;
    let rate = per_second(tasks, started);
    store.close().await;
    Ok(rate)
}

/// The median over many short runs, so that whatever else the machine does counts little.
fn read_us(path: &Path, tasks: u64) -> Result<f64, Box<dyn std::error::Error>> {
    // As beside a server: with its log in place.
    let _server = open(path, &SqliteOptions::default(), SystemClock)?;
    let reader = open_read_only(path)?;
    let run = 500;
    let mut runs_us = Vec::new();
    for start in 0..400 {
        // Far from each other, so that no two reads meet the same page.
        let keys: Vec<_> = (0..run).map(|n| key((start * run + n) * 7_919 % tasks)).collect();
        let started = Instant::now();
        for key in &keys {
            black_box(reader.read(key)?.expect("it was created"));
        }
        runs_us.push(started.elapsed().as_secs_f64() * 1e6 / run as f64);
    }
    Ok(median(runs_us))
}

/// Calls `call` once for each number, so many at a time.
async fn each<F: Future<Output = ()> + Send + 'static>(tasks: u64, callers: u64, call: impl Fn(u64) -> F + Sync) {
    let mut running = tokio::task::JoinSet::new();
    for n in 0..tasks {
        if n >= callers {
            running.join_next().await;
        }
        running.spawn(call(n));
    }
    running.join_all().await;
}

fn key(n: u64) -> TaskKey {
    let random = u128::from(n).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835).to_be_bytes();
    let owner = Owner::parse("anonymous").expect("it is a name");
    TaskKey { owner, id: TaskId::mint(Timestamp::from_ms(1_700_000_000_000 + n / 20), random) }
}

fn node() -> NodeId {
    NodeId::mint([1; 16])
}

fn new_task(n: u64) -> NewTask {
    let create = Create {
        key: key(n),
        tool: ToolRef::new("echo", "1"),
        origin: "ext2026".into(),
        policy: Policy::default(),
        retention: Retention::FromCreation(3_600_000),
        claimed_by: Some(node()),
        first_fence: 0,
    };
    NewTask { create, input: Json::from_text(INPUT) }
}

fn now_ms() -> u64 {
    longhaul_store::Clock::now(&SystemClock).as_ms()
}

fn per_second(tasks: u64, started: Instant) -> f64 {
    tasks as f64 / started.elapsed().as_secs_f64()
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}
