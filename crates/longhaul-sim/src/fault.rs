//! The faults that are injected, and how often.

use longhaul_store::embedded::DiskError;

use crate::random::SeededRandom;

/// Where a process crashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CrashPoint {
    /// While the disk was idle.
    Idle,
    /// Before or between the writes of a transaction.
    BetweenWrites,
    /// After the last write, before the commit.
    BeforeCommit,
    /// In the commit, which did not reach the disk.
    CommitLost,
    /// In the commit or right after it: the commit is durable, but neither in the cache nor answered.
    CommitDurable,
    /// After the cache was updated, before the first answer.
    BeforeAnswers,
    /// After some of the answers.
    BetweenAnswers,
    /// During recovery.
    InRecovery,
    /// During shutdown.
    InShutdown,
    /// After a failure of the disk that makes further writes unsafe, the process stopped itself.
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

/// The fault planned for a transaction, if any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransactionPlan {
    /// No fault.
    Well,
    /// The process crashes at this call.
    CrashAt(usize),
    CrashBeforeCommit,
    CrashInCommit {
        durable: bool,
    },
    /// This call fails.
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

/// Faults other than crashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// The response to a commit is lost. The commit was written.
    InDoubtWritten,
    /// The response to a commit is lost. The commit was not written.
    InDoubtNotWritten,
    /// The store is unavailable.
    Unavailable,
    /// The disk is full.
    Full,
    /// A commit fails so that no later write to the disk is safe.
    Untrusted,
    /// A call or its response is delayed.
    Delay,
    /// The store's clock is set forward.
    ClockForward,
    /// The store's clock is set back.
    ClockBack,
    /// The store's clock was ahead, and is set to the right time.
    ClockCorrected,
    /// A client drops its request before the response.
    ClientGone,
    /// A process shuts down.
    Shutdown,
    /// Before a shutdown, tasks that wait for an answer are given up.
    HangUp,
    /// A process could not start.
    StartFailed,
    /// A process with several engines on one store.
    SeveralEngines,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::InDoubtWritten,
        Self::InDoubtNotWritten,
        Self::Unavailable,
        Self::Full,
        Self::Untrusted,
        Self::Delay,
        Self::ClockForward,
        Self::ClockBack,
        Self::ClockCorrected,
        Self::ClientGone,
        Self::Shutdown,
        Self::HangUp,
        Self::StartFailed,
        Self::SeveralEngines,
    ];
}

/// The rates of the faults in one history, in permille.
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
    /// Of the claims. During a slow claim, its tasks can be cancelled and its workers be needed for other attempts.
    pub(crate) slow_claim: u32,
    /// Of the actions of clients.
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

    /// The plan for the next transaction. A transaction with a rare event gets more faults.
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
