//! What can go wrong, and where.

use longhaul_store::embedded::DiskError;

use crate::random::SeededRandom;

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
    /// In the commit or right after it: it is durable, and neither published nor answered.
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
pub(crate) enum TransactionPlan {
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
    /// The commit fails, and the writer cannot know whether it is durable.
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

/// What goes wrong beside crashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// The answer to a commit is lost; it was written.
    InDoubtWritten,
    /// The answer to a commit is lost; it was not written.
    InDoubtNotWritten,
    /// The store cannot be asked.
    Unavailable,
    /// There is no room.
    Full,
    /// A commit fails in a way after which the disk cannot be trusted.
    Untrusted,
    /// A call or its answer takes its time.
    Delay,
    /// The store's clock is set forward.
    ClockForward,
    /// The store's clock is set back.
    ClockBack,
    /// A client goes away before it has its answer.
    ClientGone,
    /// A process ends in good order.
    Shutdown,
    /// Before that, tasks that wait for an answer are given up.
    HangUp,
    /// A process could not start.
    StartFailed,
    /// A process with several engines on one store.
    SeveralEngines,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::InDoubtWritten,
        Self::InDoubtNotWritten,
        Self::Unavailable,
        Self::Full,
        Self::Untrusted,
        Self::Delay,
        Self::ClockForward,
        Self::ClockBack,
        Self::ClientGone,
        Self::Shutdown,
        Self::HangUp,
        Self::StartFailed,
        Self::SeveralEngines,
    ];
}

/// How often something goes wrong in one history, in permille of what it can happen to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FaultRates {
    /// Of the transactions.
    pub(crate) crash: u32,
    pub(crate) failure: u32,
    pub(crate) untrusted: u32,
    /// Of the commits.
    pub(crate) in_doubt: u32,
    /// Of the reads.
    pub(crate) read_failure: u32,
    /// Of the calls and of their answers.
    pub(crate) delay: u32,
    /// Of the claims: while one is slow, what it would get is cancelled and workers are wanted elsewhere.
    pub(crate) slow_claim: u32,
    /// Of what clients do.
    pub(crate) idle_crash: u32,
    pub(crate) shutdown: u32,
    pub(crate) clock_jump: u32,
}

impl FaultRates {
    pub(crate) const CALM: Self = Self {
        crash: 0,
        failure: 0,
        untrusted: 0,
        in_doubt: 0,
        read_failure: 0,
        delay: 0,
        slow_claim: 0,
        idle_crash: 0,
        shutdown: 0,
        clock_jump: 0,
    };

    pub(crate) fn choose(random: &mut SeededRandom) -> Self {
        let mild = Self { delay: 250, slow_claim: 300, clock_jump: 60, shutdown: 10, ..Self::CALM };
        let fair = Self { crash: 20, idle_crash: 15, ..mild };
        let full_disk = Self { crash: 10, failure: 250, untrusted: 5, idle_crash: 10, ..mild };
        let far_away = Self { in_doubt: 60, read_failure: 10, delay: 700, ..fair };
        let stormy = Self {
            crash: 80,
            failure: 50,
            untrusted: 10,
            in_doubt: 40,
            read_failure: 15,
            delay: 400,
            slow_claim: 300,
            idle_crash: 30,
            shutdown: 25,
            clock_jump: 100,
        };
        let choices = [(2, mild), (4, fair), (1, full_disk), (3, far_away), (4, stormy)];
        random.weighted(&choices).unwrap_or(Self::CALM)
    }

    /// What becomes of the next transaction. One with something rare in it is worth more trouble.
    pub(crate) fn plan(&self, random: &mut SeededRandom, rare: bool) -> TransactionPlan {
        let crash = if rare { self.crash * 4 } else { self.crash };
        if random.permille(crash) {
            return match random.below(8) {
                0..=2 => TransactionPlan::CrashAt(random.below(8)),
                3 => TransactionPlan::CrashBeforeCommit,
                4 => TransactionPlan::CrashInCommit { durable: false },
                _ => TransactionPlan::CrashInCommit { durable: true },
            };
        }
        if random.permille(self.untrusted) {
            return TransactionPlan::Untrusted { durable: random.below(2) == 0 };
        }
        if random.permille(self.failure) {
            let kind = if random.below(2) == 0 { Kind::Full } else { Kind::Failed };
            return match random.below(3) {
                0 => TransactionPlan::FailAt(random.below(8), kind),
                _ => TransactionPlan::FailCommit(kind),
            };
        }
        TransactionPlan::Well
    }
}
