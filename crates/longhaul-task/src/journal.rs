//! The journal of a task: what its handler did through its context, and what that returned.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Json, QuestionKey, Task, Timestamp, TransitionError, Wait};

/// The maximum length of the name of an operation, in bytes.
pub const ENTRY_NAME_BYTES_MAX: usize = 256;

/// One entry of a task's journal: an operation that a handler performed through its context, and its output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalEntry {
    pub position: JournalPosition,
    pub kind: EntryKind,
    /// The name that the handler gave to the operation.
    pub name: Arc<str>,
    /// Digest of the operation's input. 0 for an operation that is identified by its name alone.
    pub digest: u64,
    pub state: EntryState,
    /// The key of the question, if the entry is one.
    pub question: Option<QuestionKey>,
    /// How long the operation took, if it has ended. For a question: the time to its answer.
    pub took_ms: Option<u64>,
    /// Something that a reader of the history should know, for example that a resumed handler asked with another text.
    pub note: Option<Arc<str>>,
    /// The number of the attempt that wrote the entry. Set by the state machine.
    pub attempt: u32,
    /// The time at which the entry was first written. Set by the state machine.
    pub at: Timestamp,
}

/// The position of an entry in a task's journal. Each fork has its own sequence.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct JournalPosition {
    /// The keys of the forks that lead here, joined by `/`; empty for the handler itself.
    pub fork: Arc<str>,
    /// Position of the operation within its fork, counted from 0.
    pub seq: u32,
}

impl JournalPosition {
    /// The position of the handler's outcome, if the handler returned before its children. No fork has this key.
    pub fn of_return() -> Self {
        Self { fork: ":return".into(), seq: 0 }
    }

    /// Whether this position is in the given fork or in a fork that is nested in it.
    pub fn is_in_fork(&self, fork: &str) -> bool {
        self.fork.strip_prefix(fork).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// Work that is done once.
    Step,
    /// A question to the requestor.
    Question,
    /// A sleep. The output is its [`Wait`].
    Timer,
    /// A child task. The output is its ID.
    Subtask,
    /// The time of the store's clock.
    Now,
    /// Random bits.
    Random,
    /// The end of a race. The output is the string `first` or `second`: the branch that won.
    Race,
    /// The handler has returned, and children of its task were open. The output is its [`Outcome`](crate::Outcome).
    Return,
}

impl EntryKind {
    pub const ALL: [Self; 8] =
        [Self::Step, Self::Question, Self::Timer, Self::Subtask, Self::Now, Self::Random, Self::Race, Self::Return];

    /// The name in table columns, in error messages and in the history.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Step => "step",
            Self::Question => "question",
            Self::Timer => "timer",
            Self::Subtask => "subtask",
            Self::Now => "now",
            Self::Random => "random",
            Self::Race => "race",
            Self::Return => "return",
        }
    }

    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// The state of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryState {
    /// The operation is a question that has no answer yet.
    Open,
    /// The step has failed and will be tried again.
    Retrying(StepRetry),
    /// The operation has ended with this output.
    Done(Json),
    /// The step has failed for good, or the question was not answered. The text says why.
    Failed(Arc<str>),
    /// The step was done, and its output was larger than its tool allows.
    TooLarge { bytes: u64, bytes_max: u64 },
}

/// The failures of a step that will be tried again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepRetry {
    /// The number of tries that have failed.
    pub failures: u32,
    /// The next try begins when this wait is over.
    pub wait: Wait,
    /// Why the last try failed.
    pub error: Arc<str>,
}

/// The answer to a question, or the reason why there is none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// The answer. The caller has checked that it fits the question.
    Given(Json),
    /// There will be no answer. The text says why.
    NotGiven(Arc<str>),
}

impl Answer {
    /// The state of the question's entry after this answer.
    pub fn into_state(self) -> EntryState {
        match self {
            Self::Given(body) => EntryState::Done(body),
            Self::NotGiven(reason) => EntryState::Failed(reason),
        }
    }
}

/// A write to the task's journal, in the same commit as the change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JournalWrite {
    /// A new entry. If its position has an entry already, [`JournalEntry::conflict_with`] decides.
    Insert(JournalEntry),
    /// The answer to a question, which is written into the question's entry.
    Answer { key: QuestionKey, answer: Answer, at: Timestamp },
}

/// What happens to a new entry if its position has one already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryConflict {
    /// The existing entry is replaced by this one.
    Replace(Box<JournalEntry>),
    /// The existing entry stays: the same operation was recorded before, by a commit whose response was lost.
    Keep,
    /// The operations differ.
    Refuse(TransitionError),
}

impl JournalEntry {
    /// An entry that has not been written yet.
    pub fn new(position: JournalPosition, kind: EntryKind, name: Arc<str>, digest: u64, state: EntryState) -> Self {
        Self {
            position,
            kind,
            name,
            digest,
            state,
            question: None,
            took_ms: None,
            note: None,
            attempt: 0,
            at: Timestamp::ZERO,
        }
    }

    /// The entry as the task's current attempt writes it.
    pub(crate) fn written_by(mut self, task: &Task, now: Timestamp) -> Self {
        self.attempt = task.attempt;
        self.at = now;
        self
    }

    /// Decides what happens if this entry is written at the position of `existing`.
    pub fn conflict_with(&self, existing: &Self) -> EntryConflict {
        if (self.kind, &self.name) != (existing.kind, &existing.name) {
            return EntryConflict::Refuse(TransitionError::HandlerChanged {
                recorded: existing.describe(),
                performed: self.describe(),
            });
        }
        match (&existing.state, self.kind) {
            // A step that is tried again, and a timer that begins again because the clock has gone back.
            (EntryState::Retrying(_), _) | (_, EntryKind::Timer) => {
                EntryConflict::Replace(Box::new(Self { at: existing.at, ..self.clone() }))
            }
            (_, EntryKind::Question) => match (&self.note, &existing.question) {
                // Only the note is new: the question itself was asked by an earlier attempt.
                (Some(note), _) => {
                    EntryConflict::Replace(Box::new(Self { note: Some(Arc::clone(note)), ..existing.clone() }))
                }
                (None, Some(key)) => EntryConflict::Refuse(TransitionError::AskedAlready(key.clone())),
                (None, None) => EntryConflict::Keep,
            },
            _ => EntryConflict::Keep,
        }
    }

    /// The entry of a question after its answer.
    pub fn answered(mut self, answer: Answer, at: Timestamp) -> Self {
        self.took_ms = Some(at.ms_since(self.at));
        self.state = answer.into_state();
        self
    }

    /// The operation as an error message names it.
    pub fn describe(&self) -> Arc<str> {
        describe(self.kind, &self.name)
    }

    /// The size of the entry's texts, which counts towards the limits of the journal.
    pub fn bytes(&self) -> usize {
        let state = match &self.state {
            EntryState::Open | EntryState::TooLarge { .. } => 0,
            EntryState::Retrying(retry) => retry.error.len(),
            EntryState::Done(output) => output.bytes(),
            EntryState::Failed(reason) => reason.len(),
        };
        self.name.len() + self.position.fork.len() + state
    }
}

/// An operation as an error message names it: its kind, and its name if it has one.
pub fn describe(kind: EntryKind, name: &str) -> Arc<str> {
    if name.is_empty() { kind.as_str().into() } else { format!("{} {name:?}", kind.as_str()).into() }
}

/// Checks the fence of an attempt that records entries, and completes the entries with the number of the attempt and the
/// time. A store writes them without changing the task.
pub fn record(
    task: &Task,
    fence: u64,
    entries: &[JournalEntry],
    now: Timestamp,
) -> Result<Vec<JournalEntry>, TransitionError> {
    task.check_fence(fence)?;
    Ok(entries.iter().map(|entry| entry.clone().written_by(task, now)).collect())
}

/// How one attempt of a task ended, for the history. The last attempt of a settled task has no record: the task itself has
/// [its beginning](crate::Phase::Settled) and its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptRecord {
    /// The number of the attempt, counted from 1.
    pub attempt: u32,
    pub node: crate::NodeId,
    pub began_at: Timestamp,
    /// For a lost attempt: when it last wrote something. Nothing is known of the time after that.
    pub ended_at: Timestamp,
    pub end: AttemptEnd,
}

/// Why an attempt ended and the task did not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttemptEnd {
    /// Its process died, or gave the attempt up.
    Lost,
    /// Its process stopped as it was told to. This does not count as a failure.
    Stopped,
    /// Its handler was dropped because it only waited.
    Parked,
    /// Its handler has returned, and the task waits for its children.
    Returned,
    /// It failed, and another attempt may succeed. The text says why.
    Released(Arc<str>),
}

impl AttemptRecord {
    /// The record of the task's current attempt. `None` if no attempt holds the task.
    pub(crate) fn of(task: &Task, end: AttemptEnd, now: Timestamp) -> Option<Self> {
        let run = task.phase.active_attempt()?;
        Some(Self { attempt: task.attempt, node: run.node, began_at: run.began_at, ended_at: now, end })
    }
}
