use longhaul_task::{Outcome, Phase};

/// The five statuses of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// Under way.
    Working,
    /// Waits for the requestor.
    InputRequired,
    /// Has a result.
    Completed,
    /// Has an error.
    Failed,
    /// Was called off.
    Cancelled,
}

impl Status {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Working, Self::InputRequired, Self::Completed, Self::Failed, Self::Cancelled];

    /// How a phase is called here.
    pub fn of(phase: &Phase) -> Self {
        match phase {
            Phase::Queued { .. } | Phase::Running { .. } | Phase::Parked { .. } => Self::Working,
            Phase::Waiting { .. } => Self::InputRequired,
            Phase::Settled { outcome: Outcome::Answer { is_error: false, .. }, .. } => Self::Completed,
            // A tool that reports an error has failed here, like a refusal of the protocol.
            Phase::Settled { outcome: Outcome::Answer { is_error: true, .. } | Outcome::Refusal(_), .. } => {
                Self::Failed
            }
            Phase::Settled { outcome: Outcome::Cancelled, .. } => Self::Cancelled,
        }
    }

    /// The status' name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::InputRequired => "input_required",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// The status of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }

    /// Whether nothing comes after it.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}
