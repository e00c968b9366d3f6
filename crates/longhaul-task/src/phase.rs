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
    /// Waits for answers.
    Waiting {
        /// The attempt that keeps its future meanwhile; none when the handler was dropped and will run again.
        run: Option<Run>,
        /// What it waits for.
        questions: Questions,
    },
    /// Waits for a timer or for children, with nobody's memory holding it.
    Parked {
        /// When it goes on by itself; never, when it waits for children.
        wake_at: Option<Timestamp>,
    },
    /// Done, for good.
    Settled {
        /// How it ended.
        outcome: Outcome,
        /// When.
        at: Timestamp,
    },
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
            Self::Running { run } => Some(*run),
            Self::Waiting { run, .. } => *run,
            Self::Queued { .. } | Self::Parked { .. } | Self::Settled { .. } => None,
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
