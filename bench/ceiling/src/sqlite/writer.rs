//! The only writer. It commits all queued writes in one transaction, publishes them, and then acknowledges them.

use std::sync::{
    Arc,
    mpsc::{self, Receiver, Sender},
};
use std::thread::{self, JoinHandle};

use anyhow::Context;
use bytes::Bytes;
use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use tokio::sync::oneshot;

use super::{Committed, OWNER};
use crate::answer::TTL_MS;

/// The maximum number of writes in one transaction. It bounds the wait of the first of them.
const BATCH_MAX: usize = 1024;
const RUNNING_MS_MAX: i64 = 24 * 60 * 60 * 1_000;
const LIFE_MS_MAX: i64 = 7 * RUNNING_MS_MAX;
const NODE: &str = "00112233445566778899aabbccddeeff";

const INSERT_TASK: &str = "INSERT INTO task (owner, id, depth, children, ordinal, tool, version, origin, on_crash,
    attempts_max, backoff_ms, backoff_ms_max, running_ms_max, life_ms_max, retention_from_creation_ms, created_at,
    updated_at, revision, fence, attempt, spent, questions_asked, phase, node, run_since, due_at, small_input)
  VALUES (?1, ?2, 0, 0, 0, 'echo', '1', 'ext2026', 'fail', 5, 1000, 60000, ?3, ?4, ?5, ?6, ?6, 1, 1, 1, 0, 0, 'running',
    ?7, ?6, ?8, ?9)";
const SETTLE_TASK: &str = "UPDATE task SET phase = 'settled', outcome = 'answer', revision = revision + 1, node = NULL,
    run_since = NULL, updated_at = ?3, settled_at = ?3, due_at = ?4, small_outcome = ?5
  WHERE owner = ?1 AND id = ?2 AND revision = 1";

const INSERT_ENTRY: &str =
    "INSERT INTO journal (owner, id, epoch, fork, seq, kind, name, digest, state, output, took_ms,
    attempt, at)
  VALUES (?1, ?2, 0, '', ?3, 'step', 'empty', 0, 'done', 'null', 0, 1, ?4)";

/// A task to create, claimed in the same write.
pub struct NewTask {
    pub id: Arc<str>,
    pub created_ms: i64,
    pub arguments: String,
    pub view: Bytes,
}

/// A journal entry to write.
pub struct NewEntry {
    pub id: Arc<str>,
    pub seq: u32,
    pub at_ms: i64,
}

/// A task to settle with its result.
pub struct Settlement {
    pub id: Arc<str>,
    pub settled_ms: i64,
    pub result: String,
    pub view: Bytes,
}

enum Write {
    Create(NewTask, oneshot::Sender<()>),
    Record(NewEntry, oneshot::Sender<()>),
    Settle(Settlement),
}

/// The sending side of the write queue. The queue needs no limit, because a connection has at most one creation and one
/// settlement in it.
pub struct Writer {
    queue: Sender<Write>,
}

impl Writer {
    /// Returns once the task is on stable storage.
    pub async fn create(&self, task: NewTask) -> anyhow::Result<()> {
        let (acknowledge, acknowledged) = oneshot::channel();
        self.send(Write::Create(task, acknowledge))?;
        acknowledged.await.context("the writer has ended")
    }

    /// Returns once the entry is on stable storage.
    pub async fn record(&self, entry: NewEntry) -> anyhow::Result<()> {
        let (acknowledge, acknowledged) = oneshot::channel();
        self.send(Write::Record(entry, acknowledge))?;
        acknowledged.await.context("the writer has ended")
    }

    /// Queues the settlement for the next commit, without waiting for it.
    pub fn settle(&self, settlement: Settlement) -> anyhow::Result<()> {
        self.send(Write::Settle(settlement))
    }

    fn send(&self, write: Write) -> anyhow::Result<()> {
        self.queue.send(write).ok().context("the writer has ended")
    }
}

/// Starts the thread of the writer. It ends when every [`Writer`] is dropped.
pub fn start(mut connection: Connection, committed: Arc<Committed>) -> anyhow::Result<(Writer, JoinHandle<()>)> {
    let (queue, waiting) = mpsc::channel();
    let thread = thread::Builder::new().name("writer".into()).spawn(move || {
        if let Err(error) = run(&mut connection, &waiting, &committed) {
            // After a failed commit, later commits cannot be trusted.
            eprintln!("the commit failed: {error}");
            std::process::exit(1);
        }
    })?;
    Ok((Writer { queue }, thread))
}

fn run(connection: &mut Connection, waiting: &Receiver<Write>, committed: &Committed) -> rusqlite::Result<()> {
    let mut batch = Vec::with_capacity(BATCH_MAX);
    while let Ok(first) = waiting.recv() {
        batch.push(first);
        batch.extend(waiting.try_iter().take(BATCH_MAX - 1));
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for write in &batch {
            apply(&transaction, write)?;
        }
        transaction.commit()?;
        for write in batch.drain(..) {
            publish(write, committed);
        }
    }
    Ok(())
}

fn apply(transaction: &Transaction<'_>, write: &Write) -> rusqlite::Result<()> {
    match write {
        Write::Create(task, _) => {
            let (id, created) = (&*task.id, task.created_ms);
            let limit = created + RUNNING_MS_MAX;
            transaction.prepare_cached(INSERT_TASK)?.execute(params![
                OWNER,
                id,
                RUNNING_MS_MAX,
                LIFE_MS_MAX,
                TTL_MS,
                created,
                NODE,
                limit,
                task.arguments
            ])?;
        }
        Write::Record(entry, _) => {
            let params = params![OWNER, &*entry.id, entry.seq, entry.at_ms];
            transaction.prepare_cached(INSERT_ENTRY)?.execute(params)?;
        }
        Write::Settle(settlement) => {
            let (id, settled) = (&*settlement.id, settlement.settled_ms);
            let params = params![OWNER, id, settled, settled + TTL_MS, settlement.result];
            transaction.prepare_cached(SETTLE_TASK)?.execute(params)?;
        }
    }
    Ok(())
}

fn publish(write: Write, committed: &Committed) {
    match write {
        Write::Create(task, acknowledge) => {
            committed.insert(task.id, task.view);
            // The client may have disconnected. Its task is committed nevertheless.
            acknowledge.send(()).ok();
        }
        Write::Record(_, acknowledge) => drop(acknowledge.send(())),
        Write::Settle(settlement) => committed.insert(settlement.id, settlement.view),
    }
}
