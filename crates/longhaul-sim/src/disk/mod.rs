//! A simulated disk that can fail or lose power at any call.
//!
//! While a transaction is open, readers see the last commit, as with SQLite. At every call of the writer the process
//! may crash, the disk may fail, and a client may read.

mod reader;
mod transaction;

use std::collections::BTreeMap;
use std::sync::Arc;

use longhaul_store::embedded::{Disk, DiskError, Transaction};
use longhaul_store::{Embedded, IdempotencyKey, KeyedTask, Snapshot, Store};
use longhaul_task::{
    AttemptRecord, JournalEntry, JournalPosition, Json, Outcome, Owner, Phase, Progress, QuestionKey, Questions, Task,
    TaskKey, Timestamp, ToolRef,
};
use parking_lot::{Mutex, MutexGuard};

pub(crate) use self::reader::SimReader;
use self::transaction::SimTransaction;

use crate::fault::{CrashPoint, TransactionPlan};
use crate::ledger::{Commit, Fact, WrittenEntry, WrittenTask};
use crate::store::at_once;
use crate::world::World;

/// Survives crashes of the process. Clones are handles on the same disk.
#[derive(Debug, Clone, Default)]
pub(crate) struct SimDisk {
    state: Arc<Mutex<DiskState>>,
}

#[derive(Debug, Default)]
struct DiskState {
    rows: BTreeMap<TaskKey, SimRow>,
    /// The number of lives of each key so far.
    lives: BTreeMap<TaskKey, usize>,
    secrets: BTreeMap<String, [u8; 32]>,
    uncommitted: Option<UncommittedWrites>,
    job: BatchJob,
    /// Calls since the transaction began.
    calls: usize,
    dead: Option<CrashPoint>,
    failed: bool,
    /// Facts that are not in the ledger yet.
    facts: Vec<Fact>,
}

/// The instructions for the next batch.
#[derive(Debug)]
pub(crate) struct BatchJob {
    pub(crate) plan: TransactionPlan,
    pub(crate) now: Timestamp,
    /// The events in the batch: several events can change a row in the same way.
    pub(crate) events: Vec<(TaskKey, &'static str)>,
    pub(crate) mid_batch_read: Option<MidBatchRead>,
}

/// Reads of a client between two calls of the writer, as if on another thread.
#[derive(Debug)]
pub(crate) struct MidBatchRead {
    /// The call before which the client reads. A number past the last call means right after the commit.
    pub(crate) at: usize,
    pub(crate) keys: Vec<TaskKey>,
    pub(crate) store: Embedded,
    /// The length of the ledger.
    pub(crate) began: usize,
}

impl Default for BatchJob {
    fn default() -> Self {
        Self { plan: TransactionPlan::Well, now: Timestamp::ZERO, events: Vec::new(), mid_batch_read: None }
    }
}

#[derive(Debug, Clone)]
struct SimRow {
    task: Arc<Task>,
    life: usize,
    input: Json,
    idempotency: Option<IdempotencyKey>,
    progress: Option<Arc<Progress>>,
    journal: BTreeMap<(u32, JournalPosition), JournalEntry>,
    attempts: Vec<AttemptRecord>,
}

/// The writes of the open transaction.
#[derive(Debug, Default)]
struct UncommittedWrites {
    rows: BTreeMap<TaskKey, Option<SimRow>>,
    secrets: BTreeMap<String, [u8; 32]>,
    written: Vec<WrittenTask>,
    recorded: Vec<WrittenEntry>,
    ended: Vec<(TaskKey, AttemptRecord)>,
}

/// The result of a batch.
#[derive(Debug)]
pub(crate) struct BatchResult {
    pub(crate) facts: Vec<Fact>,
    pub(crate) crashed: Option<CrashPoint>,
    /// Whether the disk reported an error.
    pub(crate) failed: bool,
    /// The events of a transaction that did not become durable.
    pub(crate) lost: Vec<&'static str>,
}

impl SimDisk {
    pub(crate) fn reader(&self, world: &World) -> SimReader {
        SimReader { disk: Arc::clone(&self.state), world: world.clone() }
    }

    /// The attempts that nodes hold.
    pub(crate) fn held(&self) -> Vec<(TaskKey, u64)> {
        let state = self.state.lock();
        let held = state.rows.values().filter(|row| row.task.phase.active_attempt().is_some());
        held.map(|row| (row.task.key.clone(), row.task.fence)).collect()
    }

    /// The open tasks with their open questions.
    pub(crate) fn open(&self) -> Vec<(TaskKey, Vec<QuestionKey>)> {
        let state = self.state.lock();
        let open = state.rows.values().map(|row| &row.task).filter(|task| !task.is_settled());
        let questions = |task: &Task| task.phase.questions().into_iter().flatten().map(|it| it.key.clone()).collect();
        open.map(|task| (task.key.clone(), questions(task))).collect()
    }

    /// Called at each call of the writer. Carries out what is planned for this call: a crash, a failure, a read.
    fn call(&self) -> Result<MutexGuard<'_, DiskState>, DiskError> {
        let call = self.state.lock().calls;
        self.read_mid_batch(|at| at == call);
        let mut state = self.state.lock();
        if state.dead.is_some() {
            return Err(power_off());
        }
        state.calls += 1;
        match state.job.plan {
            TransactionPlan::CrashAt(at) if at == call => {
                state.dead = Some(CrashPoint::BetweenWrites);
                Err(power_off())
            }
            TransactionPlan::FailAt(at, kind) if at == call => {
                state.failed = true;
                Err(kind.error())
            }
            _ => Ok(state),
        }
    }

    /// Lets the client read through the store, which includes its cache.
    fn read_mid_batch(&self, now: impl Fn(usize) -> bool) {
        let read = self.state.lock().job.mid_batch_read.take_if(|read| now(read.at));
        let Some(read) = read else { return };
        for key in read.keys {
            let found = at_once(read.store.read(&key)).and_then(Result::ok);
            self.state.lock().facts.push(Fact::Read { began: read.began, key, found });
        }
    }

    /// Sets up the next batch.
    pub(crate) fn expect(&self, job: BatchJob) {
        let mut state = self.state.lock();
        state.job = job;
        state.calls = 0;
    }

    /// The result of the last batch.
    pub(crate) fn done(&self) -> BatchResult {
        let mut state = self.state.lock();
        state.job = BatchJob::default();
        let lost = state.uncommitted.take().map(|open| {
            let entries = open.recorded.iter().map(|recorded| recorded.entry.kind.as_str());
            open.written.iter().map(|written| written.event).chain(entries).collect()
        });
        let failed = std::mem::take(&mut state.failed);
        BatchResult {
            facts: std::mem::take(&mut state.facts),
            crashed: state.dead,
            failed,
            lost: lost.unwrap_or_default(),
        }
    }

    /// Discards what was not committed.
    pub(crate) fn restart(&self) {
        let mut state = self.state.lock();
        state.uncommitted = None;
        state.dead = None;
        state.job = BatchJob::default();
    }
}

impl DiskState {
    fn uncommitted(&mut self) -> Result<&mut UncommittedWrites, DiskError> {
        self.uncommitted.as_mut().ok_or_else(|| DiskError::Failed("no transaction is open".into()))
    }

    /// Ends the transaction as planned.
    fn end(&mut self) -> Result<(), DiskError> {
        match self.job.plan {
            _ if self.dead.is_some() => return Err(power_off()),
            TransactionPlan::CrashBeforeCommit => self.dead = Some(CrashPoint::BeforeCommit),
            TransactionPlan::CrashInCommit { durable: false } => self.dead = Some(CrashPoint::CommitLost),
            TransactionPlan::CrashInCommit { durable: true } => {
                self.commit();
                self.dead = Some(CrashPoint::CommitDurable);
            }
            TransactionPlan::FailCommit(kind) => {
                self.failed = true;
                return Err(kind.error());
            }
            TransactionPlan::Untrusted { durable } => {
                if durable {
                    self.commit();
                }
                self.failed = true;
                return Err(DiskError::Untrusted("simulated".into()));
            }
            // The transaction had fewer calls than the plan.
            TransactionPlan::Well | TransactionPlan::CrashAt(_) | TransactionPlan::FailAt(..) => self.commit(),
        }
        Ok(())
    }

    fn commit(&mut self) {
        let Some(mut open) = self.uncommitted.take() else { return };
        for born in open.written.iter().filter(|written| written.is_birth()) {
            *self.lives.entry(born.key.clone()).or_default() += 1;
        }
        for (key, row) in std::mem::take(&mut open.rows) {
            match row {
                Some(row) => self.rows.insert(key, row),
                None => self.rows.remove(&key),
            };
        }
        self.secrets.extend(std::mem::take(&mut open.secrets));
        if !open.written.is_empty() || !open.recorded.is_empty() {
            let UncommittedWrites { written, recorded, ended, .. } = open;
            let commit = Commit { now: self.job.now, written, recorded, ended };
            self.facts.push(Fact::Committed(commit));
        }
    }

    /// The row as the open transaction sees it.
    fn row(&self, key: &TaskKey) -> Option<&SimRow> {
        match self.uncommitted.as_ref().and_then(|open| open.rows.get(key)) {
            Some(row) => row.as_ref(),
            None => self.rows.get(key),
        }
    }

    fn all(&self) -> impl Iterator<Item = &SimRow> {
        let changed = self.uncommitted.as_ref().map(|open| &open.rows);
        let kept = self.rows.iter().filter(move |(key, _)| changed.is_none_or(|rows| !rows.contains_key(*key)));
        kept.map(|(_, row)| row).chain(changed.into_iter().flat_map(|rows| rows.values().flatten()))
    }

    /// The queued tasks of a tool, each with its earliest time.
    fn queued(&self, tool: &ToolRef) -> impl Iterator<Item = (Timestamp, &Task)> {
        let tasks = self.all().map(|row| &*row.task).filter(move |task| task.tool == *tool);
        tasks.filter_map(|task| Some((task.phase.not_before()?, task)))
    }

    fn change(
        &mut self,
        key: &TaskKey,
        change: impl FnOnce(&mut SimRow) -> Option<WrittenEntry>,
    ) -> Result<(), DiskError> {
        let mut row = self.row(key).cloned().ok_or_else(|| DiskError::Failed(format!("no row {key:?}")))?;
        let open = self.uncommitted()?;
        open.recorded.extend(change(&mut row));
        open.rows.insert(key.clone(), Some(row));
        Ok(())
    }

    fn put_entry(&mut self, key: &TaskKey, epoch: u32, entry: &JournalEntry) -> Result<(), DiskError> {
        self.change(key, |row| {
            let replaces = row.journal.insert((epoch, entry.position.clone()), entry.clone()).is_some();
            Some(WrittenEntry { key: key.clone(), life: row.life, epoch, entry: entry.clone(), replaces })
        })
    }

    /// The first of the candidates that is in the batch.
    fn name(&self, key: &TaskKey, candidates: &[&'static str]) -> &'static str {
        let asked = |name: &&&'static str| self.job.events.iter().any(|(of, event)| of == key && event == *name);
        candidates.iter().find(asked).copied().unwrap_or("with its family")
    }
}

fn power_off() -> DiskError {
    DiskError::Failed("the power is off".into())
}

/// The events that could have made this change.
fn candidates(before: &Task, after: &Task) -> &'static [&'static str] {
    match (&before.phase, &after.phase) {
        (_, Phase::Settled { .. }) if after.fence == before.fence => &["settle"],
        (_, Phase::Settled { outcome: Outcome::Cancelled, .. }) => &["cancel"],
        (_, Phase::Settled { .. }) => &["lose", "overdue", "settle"],
        (was, now) if after.fence == before.fence && is_shortened(was, now) => &["shorten"],
        (was, now) if was == now && is_counted_alike(before, after) => &["renew", "report", "abandon"],
        (was, now) if was.active_attempt().is_some() && now.not_before().is_some() => &["lose", "release"],
        (was, now) if was.active_attempt().is_some() && now.wake_condition().is_some() => &["park"],
        (was, now) if was.wake_condition().is_some() && open_questions(was) == open_questions(now) => {
            &["wake", "shorten"]
        }
        _ if after.questions_asked > before.questions_asked => &["ask"],
        _ if after.family.children > before.family.children => &["spawn"],
        (Phase::Waiting { questions: before, .. }, Phase::Waiting { questions: after, .. })
            if before.count() == after.count() =>
        {
            &["report", "abandon"]
        }
        (Phase::Waiting { .. }, _) => &["answer", "time out", "abandon"],
        _ => &["report", "ask", "abandon"],
    }
}

/// Nothing that a task counts has changed.
fn is_counted_alike(before: &Task, after: &Task) -> bool {
    let counts = |task: &Task| (task.fence, task.questions_asked, task.family.children);
    counts(before) == counts(after)
}

fn open_questions(phase: &Phase) -> usize {
    phase.questions().map_or(0, Questions::count)
}

/// The same phase, begun earlier.
fn is_shortened(before: &Phase, after: &Phase) -> bool {
    let is_same = before.name() == after.name() && open_questions(before) == open_questions(after);
    is_same && before.since().zip(after.since()).is_some_and(|(before, after)| after < before)
}

impl Disk for SimDisk {
    fn begin(&mut self) -> Result<Box<dyn Transaction + '_>, DiskError> {
        self.state.lock().uncommitted = Some(UncommittedWrites::default());
        let transaction = SimTransaction { disk: self };
        drop(self.call()?);
        Ok(Box::new(transaction))
    }
}

impl SimRow {
    fn is_child_of(&self, key: &TaskKey) -> bool {
        self.task.key.owner == key.owner && self.task.family.parent.as_ref() == Some(&key.id)
    }

    /// The task, if it has this idempotency key.
    fn keyed(&self, owner: &Owner, key: &str) -> Option<KeyedTask> {
        let request =
            self.idempotency.as_ref().filter(|request| self.task.key.owner == *owner && *request.key == *key)?;
        Some(KeyedTask { id: self.task.key.id.clone(), digest: request.digest })
    }

    /// The entry of a question, with its epoch.
    fn question(&self, question: &QuestionKey) -> Option<(u32, JournalEntry)> {
        let mut journal = self.journal.iter();
        let found = journal.find(|(_, entry)| entry.question.as_ref() == Some(question));
        found.map(|((epoch, _), entry)| (*epoch, entry.clone()))
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot { task: Arc::clone(&self.task), progress: self.progress.clone() }
    }
}
