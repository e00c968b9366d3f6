//! The ledger: durable changes, responses to clients and actions of handlers, in order.

use std::fmt;
use std::sync::Arc;

use longhaul_store::{HeldAttempt, IdempotencyKey, Snapshot, StoreError};
use longhaul_task::{
    Answer, AttemptRecord, EntryState, JournalEntry, JournalPosition, Json, NodeId, Outcome, Owner, QuestionKey, Task,
    TaskKey, Timestamp, ToolRef,
};

use crate::fault::CrashPoint;

/// One line of the ledger.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The store's time.
    pub at: Timestamp,
    pub fact: Fact,
}

/// Something that happened.
#[derive(Debug, Clone)]
pub enum Fact {
    /// The limits of this history.
    Rules(Rules),
    /// An engine has recovered and serves from here on.
    Recovered {
        nodes: Vec<NodeId>,
        /// The attempts that nodes hold according to the store.
        held: Vec<HeldAttempt>,
    },
    /// The process crashed.
    Crashed(CrashPoint),
    /// The process has shut down.
    ShutDown,
    /// A transaction became durable.
    Committed(Commit),
    /// The response to a commit was lost.
    InDoubt { event: &'static str, written: bool },
    /// A client received the confirmation of a change.
    Acknowledged { what: Ack, key: TaskKey, revision: u64 },
    /// A client received an error.
    Denied {
        /// The length of the ledger at the time of the request.
        began: usize,
        key: TaskKey,
        what: &'static str,
        error: StoreError,
    },
    /// A client received the response to a creation under an idempotency key.
    KeyedCreation {
        /// The length of the ledger at the time of the request.
        began: usize,
        owner: Owner,
        request: IdempotencyKey,
        response: KeyedResponse,
    },
    /// A client read a task, or that it does not exist.
    Read {
        /// The length of the ledger at the time of the request.
        began: usize,
        key: TaskKey,
        found: Option<Snapshot>,
    },
    /// An attempt received the confirmation of its write.
    Wrote { key: TaskKey, fence: u64, event: &'static str, revision: u64 },
    /// A write of an attempt that had lost its task was accepted.
    WroteLate { key: TaskKey, fence: u64, event: &'static str },
    /// A handler was started.
    Started { key: TaskKey, attempt: u32 },
    /// The work of a step begins.
    Effect {
        key: TaskKey,
        attempt: u32,
        epoch: u32,
        position: JournalPosition,
        /// Whether it succeeds.
        succeeds: bool,
    },
    /// An operation returned this output to a handler.
    Got { key: TaskKey, attempt: u32, epoch: u32, position: JournalPosition, output: Json },
    /// A sleep has ended.
    Slept { key: TaskKey, attempt: u32, position: JournalPosition },
    /// A handler got the outcome of the subtask at this position.
    ChildEnded { key: TaskKey, epoch: u32, position: JournalPosition, outcome: Outcome },
    /// A handler goes on after a race that this fork has lost.
    Raced { key: TaskKey, attempt: u32, lost: String },
    /// A handler makes these forks of its root under other keys than earlier attempts.
    Renamed { key: TaskKey, attempt: u32, forks: [String; 2] },
    /// The store's clock was set back.
    ClockSetBack { from: Timestamp },
    /// The number of working handlers of a tool.
    Working { tool: ToolRef, handlers: usize },
    /// All work has come to rest.
    Quiet(IdleCounts),
    /// The last revision that a follower of a task has seen.
    Followed {
        key: TaskKey,
        /// `None` if the task did not exist.
        seen: Option<u64>,
    },
}

/// The limits of a history.
#[derive(Debug, Clone)]
pub struct Rules {
    /// Engines in one process. An engine does not know the counts of the others.
    pub engines: usize,
    /// The owners whose tasks are counted.
    pub owners: Vec<Owner>,
    pub open_per_owner_max: usize,
    pub tools: Vec<ToolRules>,
}

/// The limits of one tool.
#[derive(Debug, Clone)]
pub struct ToolRules {
    pub tool: ToolRef,
    pub running_max: usize,
    pub idle_max: usize,
    /// Limits only new tasks in the queue.
    pub queued_max: usize,
}

/// One durable transaction.
#[derive(Debug, Clone)]
pub struct Commit {
    /// The store's time at the commit.
    pub now: Timestamp,
    /// Tasks, in the order they were written.
    pub written: Vec<WrittenTask>,
    /// Journal entries, in the order they were written.
    pub recorded: Vec<WrittenEntry>,
    /// Records of attempts that have ended.
    pub ended: Vec<(TaskKey, AttemptRecord)>,
}

/// One task that a transaction wrote.
#[derive(Debug, Clone)]
pub struct WrittenTask {
    pub event: &'static str,
    pub key: TaskKey,
    /// `None` if it was deleted.
    pub after: Option<Arc<Task>>,
    /// Set if it was created under an idempotency key.
    pub idempotency: Option<IdempotencyKey>,
}

impl WrittenTask {
    /// Whether this is a new task.
    pub(crate) fn is_birth(&self) -> bool {
        self.after.as_ref().is_some_and(|task| task.revision == 1)
    }
}

/// One journal entry that a transaction wrote.
#[derive(Debug, Clone)]
pub struct WrittenEntry {
    pub key: TaskKey,
    /// The life of the task, counted from 1: the ID of a deleted task can be used again.
    pub life: usize,
    pub epoch: u32,
    pub entry: JournalEntry,
    /// Whether an entry was there before.
    pub replaces: bool,
}

impl WrittenEntry {
    pub(crate) fn output(&self) -> Option<Json> {
        output_of(&self.entry.state)
    }
}

/// What a handler gets from an operation that has ended.
pub(crate) fn output_of(state: &EntryState) -> Option<Json> {
    match state {
        EntryState::Open | EntryState::Retrying(_) => None,
        EntryState::Done(output) => Some(output.clone()),
        EntryState::Failed(message) => Some(failed(message)),
        EntryState::TooLarge { bytes, .. } => Some(failed(&format!("{bytes} bytes"))),
    }
}

/// A failure as the ledger shows it.
pub(crate) fn failed(message: &str) -> Json {
    Json::from_text(format!("failed: {message}"))
}

/// The response to a creation under an idempotency key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyedResponse {
    Created(TaskKey),
    /// An earlier request has created the task.
    Existed(TaskKey),
    /// Another request has created a task under the key.
    Refused,
}

/// A change that is confirmed to a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ack {
    Created,
    Cancelled,
    Deleted,
    Answered { question: QuestionKey, answer: Answer },
}

/// The counts of the engine when all work has come to rest.
#[derive(Debug, Clone)]
pub struct IdleCounts {
    pub stage: EndStage,
    /// By tool: workers taken and tasks queued, as the core counts them.
    pub load: Vec<(ToolRef, usize, usize)>,
    /// Open tasks by owner, as the core counts them.
    pub open: Vec<(Owner, usize)>,
    pub attempts: usize,
    /// Places of attempts in memory that are taken, as the core counts them.
    pub places: usize,
    pub running: usize,
    pub handlers: usize,
}

/// The stages at the end of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EndStage {
    /// No more requests came: each task is settled or waits for an answer.
    LeftAlone,
    /// All questions were answered or their tasks cancelled: all tasks are settled.
    Settled,
    /// Every retention is over.
    Expired,
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.at.as_ms() % 100_000_000)?;
        match &self.fact {
            Fact::Committed(commit) => {
                write!(f, "committed")?;
                for written in &commit.written {
                    write!(f, "\n             {} {}", written.event, short(&written.key))?;
                    if let Some(request) = &written.idempotency {
                        write!(f, " under {} of {}", request.key, request.digest[0])?;
                    }
                    if let Some(task) = &written.after {
                        write!(
                            f,
                            " rev {} fence {} attempt {} {:?}",
                            task.revision, task.fence, task.attempt, task.phase
                        )?;
                    }
                }
                for recorded in &commit.recorded {
                    let WrittenEntry { key, epoch, entry, .. } = recorded;
                    let (position, state, attempt) = (&entry.position, &entry.state, entry.attempt);
                    let (key, what, seq) = (short(key), entry.describe(), position.seq);
                    write!(f, "\n             {key} {epoch} {:?} {seq} {what} by {attempt}: {state:?}", position.fork)?;
                }
                for (key, record) in &commit.ended {
                    write!(f, "\n             {} attempt {} {:?}", short(key), record.attempt, record.end)?;
                }
                Ok(())
            }
            Fact::Effect { key, attempt, position, succeeds, .. } => {
                let JournalPosition { fork, seq } = position;
                write!(f, "{} attempt {attempt} works at {fork:?} {seq}, succeeds: {succeeds}", short(key))
            }
            Fact::Got { key, attempt, position: JournalPosition { fork, seq }, output, .. } => {
                write!(f, "{} attempt {attempt} got {output:?} at {fork:?} {seq}", short(key))
            }
            Fact::Read { began, key, found } => {
                write!(f, "read {} (began at {began})", short(key))?;
                match found {
                    Some(Snapshot { task, .. }) => write!(f, ": rev {} {}", task.revision, task.phase.name().as_str()),
                    None => write!(f, ": not there"),
                }
            }
            Fact::Acknowledged { what, key, revision } => {
                write!(f, "acknowledged {what:?} {} rev {revision}", short(key))
            }
            Fact::KeyedCreation { owner, request, response, .. } => {
                write!(f, "{owner} creates under {} of {}: {response:?}", request.key, request.digest[0])
            }
            Fact::Denied { key, what, error, .. } => write!(f, "denied {what} {}: {error}", short(key)),
            Fact::Wrote { key, fence, event, revision } => {
                write!(f, "attempt {} fence {fence} wrote {event} rev {revision}", short(key))
            }
            Fact::WroteLate { key, fence, event } => write!(f, "{event} {} came late under fence {fence}", short(key)),
            Fact::Started { key, attempt } => write!(f, "started {} attempt {attempt}", short(key)),
            Fact::Followed { key, seen } => write!(f, "followed {} seen {seen:?}", short(key)),
            other => write!(f, "{other:?}"),
        }
    }
}

/// A key as a trace shows it.
pub(crate) fn short(key: &TaskKey) -> String {
    let id = key.id.as_str();
    let tail = id.get(id.len().saturating_sub(6)..).unwrap_or(id);
    format!("{}/{tail}", key.owner)
}
