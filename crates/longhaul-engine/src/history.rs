//! What happened to a task, in order: its creation, its attempts, what they recorded, its end. The events are not stored: they
//! are made from the task, its journal and the records of its attempts.

use std::sync::Arc;

use longhaul_store::TaskHistory;
use longhaul_task::{
    AttemptEnd, EntryKind, EntryState, JournalEntry, JournalPosition, NodeId, Outcome, Phase, Task, TaskId, Timestamp,
};

use crate::journal::child_id;

/// One event in the life of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryEvent {
    pub at: Timestamp,
    pub what: HistoryItem,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum HistoryItem {
    Created,
    /// A node began to run the task, or to run it again.
    AttemptBegan {
        attempt: u32,
        node: NodeId,
    },
    /// An attempt ended, and the task went on.
    AttemptEnded {
        attempt: u32,
        node: NodeId,
        /// The time from its beginning, waits included; for a lost attempt, up to its last write.
        ran_ms: u64,
        end: AttemptEnd,
    },
    /// A step has ended, or failed and will be tried again.
    Step {
        position: JournalPosition,
        name: Arc<str>,
        attempt: u32,
        took_ms: Option<u64>,
        state: EntryState,
        /// The failures of earlier tries, if there were any.
        note: Option<Arc<str>>,
    },
    /// A question was asked.
    Asked {
        key: Arc<str>,
        attempt: u32,
        note: Option<Arc<str>>,
    },
    /// A question was answered, or closed without an answer.
    Answered {
        key: Arc<str>,
        waited_ms: u64,
        state: EntryState,
    },
    /// A sleep began.
    Timer {
        name: Arc<str>,
        attempt: u32,
        until: Option<Timestamp>,
    },
    /// A child was created.
    Subtask {
        name: Arc<str>,
        attempt: u32,
        id: Option<TaskId>,
    },
    /// A race has a winner.
    Race {
        name: Arc<str>,
        attempt: u32,
        winner: EntryState,
    },
    /// The task has ended.
    Settled {
        status: &'static str,
        message: Option<Arc<str>>,
    },
}

/// The events of a task, oldest first.
pub fn events(task: &Task, history: &TaskHistory) -> Vec<HistoryEvent> {
    let mut events = vec![HistoryEvent { at: task.created_at, what: HistoryItem::Created }];
    for record in &history.attempts {
        let (attempt, node) = (record.attempt, record.node);
        let ran_ms = record.ended_at.ms_since(record.began_at);
        events.push(HistoryEvent { at: record.began_at, what: HistoryItem::AttemptBegan { attempt, node } });
        let what = HistoryItem::AttemptEnded { attempt, node, ran_ms, end: record.end.clone() };
        events.push(HistoryEvent { at: record.ended_at, what });
    }
    if let Some(run) = task.phase.last_attempt() {
        let what = HistoryItem::AttemptBegan { attempt: task.attempt, node: run.node };
        events.push(HistoryEvent { at: run.began_at, what });
    }
    events.extend(history.entries.iter().flat_map(entry_events));
    if let Phase::Settled { outcome, at, .. } = &task.phase {
        let status = match outcome {
            Outcome::Result { is_error: false, .. } => "completed",
            Outcome::Result { is_error: true, .. } | Outcome::Error(_) => "failed",
            Outcome::Cancelled => "cancelled",
        };
        let what = HistoryItem::Settled { status, message: task.message.clone() };
        events.push(HistoryEvent { at: *at, what });
    }
    // The sort is stable: entries of one commit stay in the order of the journal.
    events.sort_by_key(|event| event.at);
    events
}

fn entry_events(entry: &JournalEntry) -> Vec<HistoryEvent> {
    let (name, attempt) = (Arc::clone(&entry.name), entry.attempt);
    let one = |what| vec![HistoryEvent { at: entry.at, what }];
    match entry.kind {
        EntryKind::Step => {
            let (position, took_ms, state) = (entry.position.clone(), entry.took_ms, entry.state.clone());
            one(HistoryItem::Step { position, name, attempt, took_ms, state, note: entry.note.clone() })
        }
        EntryKind::Question => {
            let key: Arc<str> = entry.question.as_ref().map_or(name, |key| key.as_str().into());
            let mut events = one(HistoryItem::Asked { key: Arc::clone(&key), attempt, note: entry.note.clone() });
            if let Some(waited_ms) = entry.took_ms {
                let what = HistoryItem::Answered { key, waited_ms, state: entry.state.clone() };
                events.push(HistoryEvent { at: entry.at.plus_ms(waited_ms), what });
            }
            events
        }
        EntryKind::Timer => {
            let wait = match &entry.state {
                EntryState::Done(output) => serde_json::from_str::<longhaul_task::Wait>(output.as_str()).ok(),
                _ => None,
            };
            one(HistoryItem::Timer { name, attempt, until: wait.map(|wait| wait.until) })
        }
        EntryKind::Subtask => one(HistoryItem::Subtask { name, attempt, id: child_id(entry) }),
        EntryKind::Race => one(HistoryItem::Race { name, attempt, winner: entry.state.clone() }),
        // These are of no interest to a reader.
        EntryKind::Now | EntryKind::Random | EntryKind::Return => Vec::new(),
    }
}
