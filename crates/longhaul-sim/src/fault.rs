//! What can go wrong, and where.

use longhaul_store::embedded::DiskError;

use crate::chance::Chance;

/// Where a process died.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CrashPoint {
    /// With nothing under way at the disk.
    Idle,
    /// Before or between the writes of a transaction.
    BetweenWrites,
    /// After the last write, before the commit.
    BeforeCommit,
    /// In the commit, which did not reach the disk.
    CommitLost,
    /// In the commit or right after it: it is durable, and nobody was told. Nothing was published.
    CommitDurable,
    /// After the publication, before the first answer.
    BeforeAnswers,
    /// After some of the answers.
    BetweenAnswers,
    /// While what a dead process left behind was dealt with.
    InRecovery,
    /// While it was being shut down.
    InShutdown,
    /// The disk could not be trusted any more, and the process stopped by itself.
    Untrusted,
}

impl CrashPoint {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Idle,
        Self::BetweenWrites,
        Self::BeforeCommit,
        Self::CommitLost,
        Self::CommitDurable,
        Self::BeforeAnswers,
        Self::BetweenAnswers,
        Self::InRecovery,
        Self::InShutdown,
        Self::Untrusted,
    ];
}

/// What happens to one transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plan {
    /// It goes well.
    Well,
    /// The process dies at that call.
    CrashAt(usize),
    CrashBeforeCommit,
    CrashInCommit {
        durable: bool,
    },
    /// That call fails.
    FailAt(usize, Kind),
    FailCommit(Kind),
    /// The commit fails, nobody knows whether it is durable, and it is or is not.
    Untrusted {
        durable: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Full,
    Failed,
}

impl Kind {
    pub(crate) fn error(self) -> DiskError {
        match self {
            Self::Full => DiskError::Full("simulated".into()),
            Self::Failed => DiskError::Failed("simulated".into()),
        }
    }
}

/// How often something goes wrong in one history, in permille of the transactions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Weather {
    pub(crate) crash: u32,
    pub(crate) failure: u32,
    pub(crate) untrusted: u32,
    /// In permille of the steps.
    pub(crate) idle_crash: u32,
    pub(crate) shutdown: u32,
}

impl Weather {
    pub(crate) const CALM: Self = Self { crash: 0, failure: 0, untrusted: 0, idle_crash: 0, shutdown: 0 };

    pub(crate) fn choose(chance: &mut Chance) -> Self {
        let fair = Self { crash: 20, failure: 0, untrusted: 0, idle_crash: 4, shutdown: 2 };
        let full_disk = Self { crash: 10, failure: 250, untrusted: 5, idle_crash: 2, shutdown: 2 };
        let stormy = Self { crash: 90, failure: 60, untrusted: 10, idle_crash: 10, shutdown: 6 };
        let choices = [(2, Self::CALM), (4, fair), (1, full_disk), (4, stormy)];
        chance.weighted(&choices).unwrap_or(Self::CALM)
    }

    /// What becomes of the next transaction. One with something rare in it is worth more trouble.
    pub(crate) fn plan(&self, chance: &mut Chance, rare: bool) -> Plan {
        let crash = if rare { self.crash * 4 } else { self.crash };
        if chance.permille(crash) {
            return match chance.below(8) {
                0..=2 => Plan::CrashAt(chance.below(8)),
                3 => Plan::CrashBeforeCommit,
                4 => Plan::CrashInCommit { durable: false },
                _ => Plan::CrashInCommit { durable: true },
            };
        }
        if chance.permille(self.untrusted) {
            return Plan::Untrusted { durable: chance.below(2) == 0 };
        }
        if chance.permille(self.failure) {
            let kind = if chance.below(2) == 0 { Kind::Full } else { Kind::Failed };
            return match chance.below(3) {
                0 => Plan::FailAt(chance.below(8), kind),
                _ => Plan::FailCommit(kind),
            };
        }
        Plan::Well
    }
}
