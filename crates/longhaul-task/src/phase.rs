//! The phases of a task.

use serde::{Deserialize, Serialize};

use crate::{NodeId, Outcome, Questions, Timestamp, Wait};

/// The phase of a task. Each phase holds exactly the data that a task in this phase always has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// The task waits for a worker.
    Queued {
        /// A worker may claim it when this is over.
        wait: Wait,
    },
    /// A worker runs the task.
    Running { run: ActiveAttempt },
    /// The task has open questions.
    Waiting {
        /// What else the task does: one fork of its handler can work while another waits for an answer.
        state: WaitingState,
        questions: Questions,
    },
    /// The task waits for a timer or for its children, and its handler is not in memory.
    Parked { wake_condition: WakeCondition },
    /// The task has ended. It does not change again until it is deleted.
    Settled {
        outcome: Outcome,
        at: Timestamp,
        /// The attempt whose handler was in memory at the end.
        last_attempt: Option<ActiveAttempt>,
    },
}

/// What a task with open questions does meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum WaitingState {
    /// Its handler is in the memory of a node.
    Held(ActiveAttempt),
    /// Its handler was dropped and will run again after an answer, a timer or the end of a child.
    Parked(WakeCondition),
    /// It waits for a worker.
    Queued {
        /// A worker may claim it when this is over.
        wait: Wait,
    },
}

/// What wakes a task whose handler was dropped. An answer to any of its open questions wakes it as well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WakeCondition {
    /// The task is woken when this wait is over.
    pub timer: Option<Wait>,
    /// The task is woken when all children of one of these ranges have ended.
    pub children: Vec<ChildRange>,
}

/// The maximum number of ranges of children that a parked task can wait for.
pub const CHILD_RANGES_MAX: usize = 64;

/// Consecutive children of one task, by their ordinals. Children that were created together have consecutive ordinals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildRange {
    pub first: u32,
    /// The ordinal of the last child, which belongs to the range.
    pub last: u32,
}

impl ChildRange {
    pub const ALL: Self = Self { first: 0, last: u32::MAX };

    pub const fn contains(self, ordinal: u32) -> bool {
        self.first <= ordinal && ordinal <= self.last
    }
}

impl WakeCondition {
    /// The time at which the timer wakes the task.
    pub fn wake_at(&self) -> Option<Timestamp> {
        self.timer.map(|timer| timer.until)
    }
}

/// The name of a phase, for indexes, tables and diagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PhaseName {
    Queued,
    Running,
    Waiting,
    Parked,
    Settled,
}

impl PhaseName {
    pub const ALL: [Self; 5] = [Self::Queued, Self::Running, Self::Waiting, Self::Parked, Self::Settled];

    /// The name in table columns, logs and diagrams.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Parked => "parked",
            Self::Settled => "settled",
        }
    }

    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|name| name.as_str() == word)
    }
}

/// An attempt whose handler is in the memory of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActiveAttempt {
    pub node: NodeId,
    /// The last time at which it began to run: when it was claimed, or when its last open question was answered.
    pub since: Timestamp,
    /// When it was claimed. Only the history uses it.
    pub began_at: Timestamp,
}

impl ActiveAttempt {
    pub(crate) fn claimed(node: NodeId, now: Timestamp) -> Self {
        Self { node, since: now, began_at: now }
    }
}

impl Phase {
    pub fn name(&self) -> PhaseName {
        match self {
            Self::Queued { .. } => PhaseName::Queued,
            Self::Running { .. } => PhaseName::Running,
            Self::Waiting { .. } => PhaseName::Waiting,
            Self::Parked { .. } => PhaseName::Parked,
            Self::Settled { .. } => PhaseName::Settled,
        }
    }

    /// The attempt whose handler is in memory, running or waiting.
    pub fn active_attempt(&self) -> Option<ActiveAttempt> {
        match self {
            Self::Running { run } | Self::Waiting { state: WaitingState::Held(run), .. } => Some(*run),
            _ => None,
        }
    }

    /// The attempt whose handler is in memory, or was in memory when the task ended.
    pub fn last_attempt(&self) -> Option<ActiveAttempt> {
        match self {
            Self::Settled { last_attempt, .. } => *last_attempt,
            phase => phase.active_attempt(),
        }
    }

    /// The earliest time for a claim, if the task is in the queue, with or without open questions.
    pub fn not_before(&self) -> Option<Timestamp> {
        match self {
            Self::Queued { wait } | Self::Waiting { state: WaitingState::Queued { wait }, .. } => Some(wait.until),
            _ => None,
        }
    }

    /// What wakes the task, if its handler was dropped and it is not in the queue.
    pub fn wake_condition(&self) -> Option<&WakeCondition> {
        match self {
            Self::Parked { wake_condition } | Self::Waiting { state: WaitingState::Parked(wake_condition), .. } => {
                Some(wake_condition)
            }
            _ => None,
        }
    }

    /// The latest time at which a wait or the attempt of this phase began. `None` if time alone changes nothing in it.
    pub fn since(&self) -> Option<Timestamp> {
        let wait = match self {
            Self::Queued { wait } | Self::Waiting { state: WaitingState::Queued { wait }, .. } => Some(wait.since),
            _ => match self.wake_condition() {
                Some(condition) => condition.timer.map(|timer| timer.since),
                None => self.active_attempt().map(|run| run.since),
            },
        };
        let deadlines = self.questions().into_iter().flatten().filter_map(|question| question.deadline.as_ref());
        deadlines.map(|deadline| deadline.wait.since).chain(wait).max()
    }

    /// This phase for a clock that shows `now`: whatever began later begins now.
    pub(crate) fn by_clock(&self, now: Timestamp) -> Self {
        let mut phase = self.clone();
        if let Self::Waiting { questions, .. } = &mut phase {
            *questions = questions.by_clock(now);
        }
        match &mut phase {
            Self::Queued { wait } | Self::Waiting { state: WaitingState::Queued { wait }, .. } => {
                *wait = wait.by_clock(now);
            }
            Self::Running { run } | Self::Waiting { state: WaitingState::Held(run), .. } => {
                run.since = run.since.min(now);
            }
            Self::Parked { wake_condition } | Self::Waiting { state: WaitingState::Parked(wake_condition), .. } => {
                wake_condition.timer = wake_condition.timer.map(|timer| timer.by_clock(now));
            }
            Self::Settled { .. } => {}
        }
        phase
    }

    pub(crate) fn queued(wait: Wait, questions: Option<Questions>) -> Self {
        match questions {
            Some(questions) => Self::Waiting { state: WaitingState::Queued { wait }, questions },
            None => Self::Queued { wait },
        }
    }

    pub(crate) fn held(run: ActiveAttempt, questions: Option<Questions>) -> Self {
        match questions {
            Some(questions) => Self::Waiting { state: WaitingState::Held(run), questions },
            None => Self::Running { run },
        }
    }

    pub fn questions(&self) -> Option<&Questions> {
        match self {
            Self::Waiting { questions, .. } => Some(questions),
            _ => None,
        }
    }

    pub fn outcome(&self) -> Option<&Outcome> {
        match self {
            Self::Settled { outcome, .. } => Some(outcome),
            _ => None,
        }
    }
}
