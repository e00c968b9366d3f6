//! The events of a task, and the change that an event makes.

use crate::transition::{
    Abandon, AnswerQuestion, AskQuestion, Cancel, Claim, Delete, Expire, Lose, Overdue, Park, Release, Renew, Report,
    Settle, Shorten, Spawn, TimeOut, Wake,
};
use crate::{AttemptRecord, ChildRange, JournalWrite, Json, NodeId, Task, Timestamp};

/// An event of one task. Events are data, so that a backend can send them to the process that holds the task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    Claim(Claim),
    Report(Report),
    Ask(AskQuestion),
    Answer(AnswerQuestion),
    TimeOut(TimeOut),
    Abandon(Abandon),
    Spawn(Box<Spawn>),
    Park(Park),
    Wake(Wake),
    Release(Release),
    Settle(Settle),
    Cancel(Cancel),
    Lose(Lose),
    Overdue(Overdue),
    Shorten(Shorten),
    Renew(Renew),
    Expire(Expire),
    Delete(Delete),
}

/// What a store must load in addition to the task before it can apply an event. A store that locks rows locks the
/// parent first, then the task, then its descendants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    pub descendants: DescendantScope,
    /// Whether the parent must be loaded, because the event may end the task and the parent may wait for that. The store
    /// then also finds out in which of the ranges that the parent [waits for](Task::awaited_children) another child is open.
    pub parent: bool,
    /// Whether the store must find out when the current attempt has last written a journal entry.
    pub attempt_entries: bool,
}

/// What a store must load about the descendants of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DescendantScope {
    Nothing,
    /// Which of these ranges have open children. A store finds out without counting the children.
    OpenChildren(Vec<ChildRange>),
    /// All descendants that have not ended.
    OpenDescendants,
}

/// What a store has loaded for an event's [`Scope`]. The change may be committed only if none of it has changed since.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// The ranges of the scope that have open children.
    pub open_children: Vec<ChildRange>,
    /// All descendants that have not ended, in any order.
    pub open_descendants: Vec<Task>,
    pub parent: Option<Task>,
    /// The ranges that the parent waits for and that have an open child other than this task.
    pub open_siblings: Vec<ChildRange>,
    /// When the current attempt has last written a journal entry. `None` if it has written none.
    pub attempt_wrote_at: Option<Timestamp>,
}

/// The result of an event. All of it is written in one commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The task after the event. Its revision is one higher than the one that was read.
    pub task: Task,
    /// Other tasks of the family that changed: cancelled descendants, a parent that was woken.
    pub relatives: Vec<Task>,
    /// The new children and their arguments.
    pub children: Vec<(Task, Json)>,
    /// What the event writes to the journal.
    pub journal: Vec<JournalWrite>,
    /// The attempt that the event has ended, if the task goes on.
    pub ended_attempt: Option<AttemptRecord>,
    /// What the store announces after the commit.
    pub effects: Vec<Effect>,
}

/// What a store announces after it has committed a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// A child was created.
    Spawned { key: crate::TaskKey },
    /// A task has entered the queue: the task of the event, its new child, or its parent, which waited for it.
    Queued {
        key: crate::TaskKey,
        tool: crate::ToolRef,
        /// The earliest time at which a worker may claim the task.
        not_before: Timestamp,
    },
    /// An attempt has lost its right to write. The node that runs it must stop it.
    Stop {
        key: crate::TaskKey,
        node: NodeId,
        /// The fence that the attempt held.
        fence: u64,
    },
    /// A task has ended: the task of the event, or one of its descendants.
    Settled {
        key: crate::TaskKey,
        tool: crate::ToolRef,
        /// Whether the task was in the queue before.
        was_queued: bool,
    },
    /// The whole family is deleted.
    Deleted,
}

impl Effect {
    pub(crate) fn queued(task: &Task, not_before: Timestamp) -> Self {
        Self::Queued { key: task.key.clone(), tool: task.tool.clone(), not_before }
    }
}

impl Change {
    pub(crate) fn new(task: Task) -> Self {
        Self {
            task,
            relatives: Vec::new(),
            children: Vec::new(),
            journal: Vec::new(),
            ended_attempt: None,
            effects: Vec::new(),
        }
    }

    pub(crate) fn with_effect(mut self, effect: Effect) -> Self {
        self.effects.push(effect);
        self
    }

    /// Whether the store must delete the family instead of writing it.
    pub fn deletes_family(&self) -> bool {
        self.effects.contains(&Effect::Deleted)
    }
}

impl Event {
    /// What a store must load in addition to the task. It is less for a task without children or without a parent.
    pub fn scope(&self, task: &Task) -> Scope {
        let descendants = match self {
            _ if task.family.children == 0 => DescendantScope::Nothing,
            Self::Settle(_) => DescendantScope::OpenChildren(vec![ChildRange::ALL]),
            Self::Park(park) => DescendantScope::OpenChildren(park.children.clone()),
            Self::Cancel(_) | Self::Lose(_) | Self::Overdue(_) | Self::Release(_) => DescendantScope::OpenDescendants,
            _ => DescendantScope::Nothing,
        };
        let may_end = matches!(self, Self::Settle(_) | Self::Cancel(_) | Self::Lose(_) | Self::Overdue(_));
        let attempt_entries = matches!(self, Self::Lose(_)) && task.resumes();
        Scope { descendants, parent: may_end && !task.is_root(), attempt_entries }
    }

    /// The event's name in the diagram, in logs and in metrics.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Claim(_) => "claim",
            Self::Report(_) => "report",
            Self::Ask(_) => "ask",
            Self::Answer(_) => "answer",
            Self::TimeOut(_) => "time out",
            Self::Abandon(_) => "abandon",
            Self::Spawn(_) => "spawn",
            Self::Park(_) => "park",
            Self::Wake(_) => "wake",
            Self::Release(_) => "release",
            Self::Settle(_) => "settle",
            Self::Cancel(_) => "cancel",
            Self::Lose(_) => "lose",
            Self::Overdue(_) => "overdue",
            Self::Shorten(_) => "shorten",
            Self::Renew(_) => "renew",
            Self::Expire(_) => "expire",
            Self::Delete(_) => "delete",
        }
    }
}
