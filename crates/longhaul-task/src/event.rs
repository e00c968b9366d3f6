//! What can happen to a task, and what follows from it.

use crate::transition::{
    Answer, Ask, Cancel, Claim, Delete, Expire, Lose, Overdue, Park, Release, Report, Settle, Spawn, Wake,
};
use crate::{Json, NodeId, QuestionKey, Task, Timestamp};

/// Something that happens to one task. Events are data, so that every backend can carry them to where the task is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A worker takes it.
    Claim(Claim),
    /// The attempt says what it is doing.
    Report(Report),
    /// The attempt asks its requestor something.
    Ask(Ask),
    /// The requestor answers.
    Answer(Answer),
    /// The attempt makes a child.
    Spawn(Box<Spawn>),
    /// The attempt gives up its memory while it waits.
    Park(Park),
    /// What a parked task waited for has come.
    Wake(Wake),
    /// The attempt hands the task back unfinished.
    Release(Release),
    /// The attempt ends the task.
    Settle(Settle),
    /// The requestor or the operator calls it off.
    Cancel(Cancel),
    /// The node that had it is dead.
    Lose(Lose),
    /// Its time is up.
    Overdue(Overdue),
    /// Its family's retention is over.
    Expire(Expire),
    /// The requestor deletes its family.
    Delete(Delete),
}

/// What a store must load beside the task before it can apply an event. Whoever locks rows locks the parent first, then
/// the task, then what is below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scope {
    /// What is needed of the tasks below it.
    pub below: Below,
    /// Whether its parent is needed: the event may end the task, and its parent may wait for that.
    pub parent: bool,
}

/// What is needed of the tasks below one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Below {
    /// Nothing.
    Nothing,
    /// How many of its children have not ended.
    OpenChildren,
    /// All of its open descendants.
    OpenDescendants,
}

/// What a store has loaded for an event's [`Scope`]. The change commits only if all of it still stands.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// How many of its children have not ended.
    pub open_children: u32,
    /// All open tasks below it, in any order.
    pub open_descendants: Vec<Task>,
    /// Its parent.
    pub parent: Option<Task>,
}

/// What an event did: to be written in one commit, or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The task as it is now. Its revision is one past what was read.
    pub task: Task,
    /// The others that changed with it.
    pub relatives: Vec<Task>,
    /// A child that was made, with its arguments.
    pub child: Option<(Task, Json)>,
    /// What the event recorded.
    pub note: Option<Note>,
    /// What others should hear of, once it is committed.
    pub effects: Vec<Effect>,
}

/// Something to be recorded in the same commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// A question, at its place in the attempt's record.
    Asked {
        /// The question.
        key: QuestionKey,
        /// Where the handler asked it.
        record: Record,
    },
    /// An answer to it.
    Answered {
        /// The question.
        key: QuestionKey,
        /// What was answered.
        body: Json,
    },
}

/// One thing that a handler did through its context, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Where the handler did it.
    pub place: Place,
    /// The handler's own name for it.
    pub key: std::sync::Arc<str>,
    /// A digest of what it was given, so that a changed handler is noticed.
    pub digest: u64,
    /// What came of it, once something has.
    pub output: Option<Json>,
}

/// A place in the record of an attempt: each fork has its own order.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct Place {
    /// The keys of the forks that lead here, joined by `/`; empty for the handler itself.
    pub fork: std::sync::Arc<str>,
    /// The how-manieth operation of that fork it is.
    pub seq: u32,
}

/// What others should hear of, once a change is committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// A task has entered the queue: the event's own, its new child, or its parent that waited for it.
    Queued {
        /// Which.
        key: crate::TaskKey,
        /// Of which tool.
        tool: crate::ToolRef,
        /// A worker may take it from then on.
        not_before: Timestamp,
    },
    /// An attempt is void: whoever runs it must stop.
    Stop {
        /// Of which task.
        key: crate::TaskKey,
        /// The node that has it.
        node: NodeId,
        /// The fence it held.
        fence: u64,
    },
    /// A task has ended: the event's own, or one below it.
    Settled {
        /// Which.
        key: crate::TaskKey,
        /// Of which tool.
        tool: crate::ToolRef,
        /// Whether it was in the queue.
        was_queued: bool,
    },
    /// The whole family is gone.
    Deleted,
}

impl Effect {
    /// The word that a task is in the queue.
    pub(crate) fn queued(task: &Task, not_before: Timestamp) -> Self {
        Self::Queued { key: task.key.clone(), tool: task.tool.clone(), not_before }
    }
}

impl Change {
    pub(crate) fn of(task: Task) -> Self {
        Self { task, relatives: Vec::new(), child: None, note: None, effects: Vec::new() }
    }

    pub(crate) fn with(mut self, effect: Effect) -> Self {
        self.effects.push(effect);
        self
    }

    /// Whether the family is to be deleted instead of written.
    pub fn deletes_family(&self) -> bool {
        self.effects.contains(&Effect::Deleted)
    }
}

impl Event {
    /// What has to be loaded beside the task. A task without children, or without a parent, needs none.
    pub fn scope(&self, task: &Task) -> Scope {
        let below = match self {
            _ if task.family.children == 0 => Below::Nothing,
            Self::Settle(_) | Self::Park(_) => Below::OpenChildren,
            Self::Cancel(_) | Self::Lose(_) | Self::Overdue(_) | Self::Release(_) => Below::OpenDescendants,
            _ => Below::Nothing,
        };
        let may_end = matches!(self, Self::Settle(_) | Self::Cancel(_) | Self::Lose(_) | Self::Overdue(_));
        Scope { below, parent: may_end && !task.is_root() }
    }

    /// The event's name, as it stands in the diagram, in logs and in metrics.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Claim(_) => "claim",
            Self::Report(_) => "report",
            Self::Ask(_) => "ask",
            Self::Answer(_) => "answer",
            Self::Spawn(_) => "spawn",
            Self::Park(_) => "park",
            Self::Wake(_) => "wake",
            Self::Release(_) => "release",
            Self::Settle(_) => "settle",
            Self::Cancel(_) => "cancel",
            Self::Lose(_) => "lose",
            Self::Overdue(_) => "overdue",
            Self::Expire(_) => "expire",
            Self::Delete(_) => "delete",
        }
    }
}
