//! Where a task stands.

use serde::{Deserialize, Serialize};

use crate::{NodeId, Outcome, Questions, Timestamp};

/// Where a task stands. Each phase holds what it cannot be without, and nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// Waits for a worker.
    Queued {
        /// No worker may take it earlier.
        not_before: Timestamp,
    },
    /// A worker has it.
    Running {
        /// Which one.
        run: Run,
    },
    /// Has questions open.
    Waiting {
        /// Where it stands besides: a handler with several branches can work in one while another waits.
        meanwhile: Meanwhile,
        /// What it waits for.
        questions: Questions,
    },
    /// Waits for a timer or for children, with nobody's memory holding it.
    Parked {
        /// What wakes it.
        rest: Rest,
    },
    /// Done, for good.
    Settled {
        /// How it ended.
        outcome: Outcome,
        /// When.
        at: Timestamp,
    },
}

/// Where a task with open questions stands besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Meanwhile {
    /// Its handler is in a node's memory.
    Held(Run),
    /// Its handler is gone and will run again: nobody's memory holds it.
    Parked(Rest),
    /// It waits for a worker, with its questions still open.
    Queued {
        /// No worker may take it earlier.
        not_before: Timestamp,
    },
}

/// What wakes a task that is in nobody's memory, beside the answer to any of its questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rest {
    /// When it goes on by itself.
    pub wake_at: Option<Timestamp>,
    /// Whether it goes on when one of its children has ended.
    pub for_children: bool,
}

/// The names of the phases, for indexes, tables and diagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PhaseName {
    /// [`Phase::Queued`]
    Queued,
    /// [`Phase::Running`]
    Running,
    /// [`Phase::Waiting`]
    Waiting,
    /// [`Phase::Parked`]
    Parked,
    /// [`Phase::Settled`]
    Settled,
}

impl PhaseName {
    /// All phases.
    pub const ALL: [Self; 5] = [Self::Queued, Self::Running, Self::Waiting, Self::Parked, Self::Settled];

    /// The word that stands in columns, logs and diagrams.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Parked => "parked",
            Self::Settled => "settled",
        }
    }

    /// The phase of that word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|name| name.as_str() == word)
    }
}

/// One attempt that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The node that has it.
    pub node: NodeId,
    /// When it last began to run: at its claim, or when its last question was answered.
    pub since: Timestamp,
}

impl Phase {
    /// The phase's name.
    pub fn name(&self) -> PhaseName {
        match self {
            Self::Queued { .. } => PhaseName::Queued,
            Self::Running { .. } => PhaseName::Running,
            Self::Waiting { .. } => PhaseName::Waiting,
            Self::Parked { .. } => PhaseName::Parked,
            Self::Settled { .. } => PhaseName::Settled,
        }
    }

    /// The attempt that some node holds in memory, running or waiting.
    pub fn run(&self) -> Option<Run> {
        match self {
            Self::Running { run } | Self::Waiting { meanwhile: Meanwhile::Held(run), .. } => Some(*run),
            _ => None,
        }
    }

    /// The earliest moment for a worker, if it waits for one: with questions open or without.
    pub fn not_before(&self) -> Option<Timestamp> {
        match self {
            Self::Queued { not_before } | Self::Waiting { meanwhile: Meanwhile::Queued { not_before }, .. } => {
                Some(*not_before)
            }
            _ => None,
        }
    }

    /// What wakes it, if it is in nobody's memory and not in the queue.
    pub fn rest(&self) -> Option<Rest> {
        match self {
            Self::Parked { rest } | Self::Waiting { meanwhile: Meanwhile::Parked(rest), .. } => Some(*rest),
            _ => None,
        }
    }

    /// In the queue, with these questions open.
    pub(crate) fn queued(not_before: Timestamp, questions: Option<Questions>) -> Self {
        match questions {
            Some(questions) => Self::Waiting { meanwhile: Meanwhile::Queued { not_before }, questions },
            None => Self::Queued { not_before },
        }
    }

    /// Held by an attempt, with these questions open.
    pub(crate) fn held(run: Run, questions: Option<Questions>) -> Self {
        match questions {
            Some(questions) => Self::Waiting { meanwhile: Meanwhile::Held(run), questions },
            None => Self::Running { run },
        }
    }

    /// The open questions, if it waits for any.
    pub fn questions(&self) -> Option<&Questions> {
        match self {
            Self::Waiting { questions, .. } => Some(questions),
            _ => None,
        }
    }

    /// How it ended, if it has.
    pub fn outcome(&self) -> Option<&Outcome> {
        match self {
            Self::Settled { outcome, .. } => Some(outcome),
            _ => None,
        }
    }
}
