//! The ledger: what the disk made durable, what clients were told, what handlers did, in the order it happened.

use std::fmt;
use std::sync::Arc;

use longhaul_store::{HeldAttempt, Snapshot, StoreError};
use longhaul_task::{JournalPosition, Json, NodeId, Owner, QuestionKey, Task, TaskKey, Timestamp, ToolRef};

use crate::fault::CrashPoint;

/// One line of the ledger.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The store's time when it was written down.
    pub at: Timestamp,
    pub fact: Fact,
}

/// Something that happened.
#[derive(Debug, Clone)]
pub enum Fact {
    /// The limits that this history runs under.
    Rules(Rules),
    /// An engine has dealt with what was left behind, and serves from here on.
    Recovered {
        nodes: Vec<NodeId>,
        /// Attempts that the store says some node holds.
        held: Vec<HeldAttempt>,
    },
    /// It died.
    Crashed(CrashPoint),
    /// It ended in good order.
    ShutDown,
    /// A transaction became durable.
    Committed(Commit),
    /// The answer to a commit was lost.
    InDoubt { event: &'static str, written: bool },
    /// A client was told that it is done.
    Acknowledged { what: Ack, key: TaskKey, revision: u64 },
    /// A client was told no.
    Denied {
        /// How long the ledger was when it asked.
        began: usize,
        key: TaskKey,
        what: &'static str,
        error: StoreError,
    },
    /// A client saw a task, or that there is none.
    Read {
        /// How long the ledger was when it began to look.
        began: usize,
        key: TaskKey,
        found: Option<Snapshot>,
    },
    /// An attempt was told that its write is done.
    Wrote { key: TaskKey, fence: u64, event: &'static str, revision: u64 },
    /// An attempt that had lost its task for good wrote to it even so.
    WroteLate { key: TaskKey, fence: u64, event: &'static str },
    /// A handler was started.
    Started { key: TaskKey, attempt: u32 },
    /// A handler got what is on record.
    Got { key: TaskKey, epoch: u32, position: JournalPosition, output: Json },
    /// So many handlers of a tool work now.
    Working { tool: ToolRef, handlers: usize },
    /// Nothing is under way, and nothing is left to do.
    Quiet(IdleCounts),
    /// A follower of a task was told of every change.
    Followed {
        key: TaskKey,
        /// The revision it saw last; none when the task was gone.
        seen: Option<u64>,
    },
}

/// The limits of a history.
#[derive(Debug, Clone)]
pub struct Rules {
    /// Engines in one process. Several of them do not know each other's counts.
    pub engines: usize,
    /// The owners whose tasks are counted.
    pub owners: Vec<Owner>,
    /// Open tasks of one of them.
    pub open_per_owner_max: usize,
    pub tools: Vec<ToolRules>,
}

/// The limits of one tool.
#[derive(Debug, Clone)]
pub struct ToolRules {
    pub tool: ToolRef,
    pub running_max: usize,
    /// New tasks that wait for a worker.
    pub queued_max: usize,
}

/// One durable transaction.
#[derive(Debug, Clone)]
pub struct Commit {
    /// The store's time for everything in it.
    pub now: Timestamp,
    /// Tasks, in the order they were written.
    pub written: Vec<WrittenTask>,
    /// Records, in the order they were written.
    pub recorded: Vec<WrittenEntry>,
}

/// One task that a transaction wrote.
#[derive(Debug, Clone)]
pub struct WrittenTask {
    pub event: &'static str,
    pub key: TaskKey,
    /// As it is now; none when it was deleted.
    pub after: Option<Arc<Task>>,
}

impl WrittenTask {
    /// Whether this is a new task.
    pub(crate) fn is_birth(&self) -> bool {
        self.after.as_ref().is_some_and(|task| task.revision == 1)
    }
}

/// One record that a transaction wrote.
#[derive(Debug, Clone)]
pub struct WrittenEntry {
    pub key: TaskKey,
    /// In which life of it, from one: the ID of a deleted task can be used again.
    pub life: usize,
    pub epoch: u32,
    pub position: JournalPosition,
    /// The question, if it is one.
    pub question: Option<QuestionKey>,
    pub output: Option<Json>,
}

/// What a client can be told to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ack {
    /// The task is made.
    Created,
    /// It is called off.
    Cancelled,
    /// It is deleted.
    Deleted,
    /// Its question is answered.
    Answered { question: QuestionKey, body: Json },
}

/// What the engine says when nothing is under way.
#[derive(Debug, Clone)]
pub struct IdleCounts {
    pub stage: EndStage,
    /// The nodes that are not engines: their attempts are not counted below.
    pub others: Vec<NodeId>,
    /// By tool: workers taken and tasks queued, as the core counts them.
    pub load: Vec<(ToolRef, usize, usize)>,
    /// Open tasks by owner, as the core counts them.
    pub open: Vec<(Owner, usize)>,
    pub attempts: usize,
    pub running: usize,
    pub handlers: usize,
}

/// The stages of a history's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EndStage {
    /// Handlers were left to end by themselves: tasks are settled or wait for an answer.
    LeftAlone,
    /// Questions were answered or called off: everything is settled.
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
                    if let Some(task) = &written.after {
                        write!(
                            f,
                            " rev {} fence {} attempt {} {:?}",
                            task.revision, task.fence, task.attempt, task.phase
                        )?;
                    }
                }
                for recorded in &commit.recorded {
                    let WrittenEntry { key, epoch, position, question, output, .. } = recorded;
                    let key = short(key);
                    write!(f, "\n             record {key} {epoch} {position:?} {question:?} {output:?}")?;
                }
                Ok(())
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
