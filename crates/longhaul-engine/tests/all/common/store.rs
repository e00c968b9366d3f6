//! A store in memory whose calls the tests can count, fail and delay.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use longhaul_store::embedded::EmbeddedLimits;
use longhaul_store::memory::MemoryDisk;
use longhaul_store::{
    ClaimRequest, ClaimedTask, Clock, CommitResult, CreateResult, DueTasks, Embedded, HeldAttempt, IdempotencyKey,
    ListQuery, NewTask, Snapshot, Store, StoreError, TaskCount, TaskHistory, TaskPage, Watch,
};
use longhaul_task::{Event, JournalEntry, NodeId, Owner, Progress, QuestionKey, TaskId, TaskKey, Timestamp, ToolRef};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// The functions below name a call by its method of [`Store`], and a call of `apply` by the name of its event.
#[derive(Debug)]
pub(crate) struct TestStore {
    inner: Embedded,
    behind_ms: Arc<AtomicU64>,
    state: Mutex<TestStoreState>,
}

#[derive(Debug, Default)]
struct TestStoreState {
    calls: HashMap<&'static str, usize>,
    /// The error that the next calls return without being carried out, and the number of these calls.
    faults: HashMap<&'static str, (StoreError, usize)>,
    holds: HashMap<&'static str, Hold>,
    /// How many of the next calls are carried out and then return [`StoreError::InDoubt`].
    doubts: HashMap<&'static str, usize>,
    /// Milliseconds by which the clock is set back just before the next call.
    set_backs: HashMap<&'static str, u64>,
}

/// Delays the answers of calls that have been carried out.
#[derive(Debug, Clone)]
pub(crate) struct Hold {
    carried_out: Arc<Semaphore>,
    answered: Arc<Semaphore>,
}

impl Hold {
    /// Waits until one more call was carried out.
    pub(crate) async fn carried_out(&self) {
        super::must_come("a call to hold back", self.carried_out.acquire()).await.unwrap().forget();
    }

    /// Lets one call be answered.
    pub(crate) fn answer_one(&self) {
        self.answered.add_permits(1);
    }
}

impl TestStore {
    pub(crate) fn empty() -> Arc<Self> {
        Self::open(&MemoryDisk::default(), super::START)
    }

    /// The store of a process that starts at `now` with the tables of `disk`.
    pub(crate) fn open(disk: &MemoryDisk, now: Timestamp) -> Arc<Self> {
        let behind_ms = Arc::new(AtomicU64::new(0));
        let clock = TokioClock {
            runtime: Handle::current(),
            started: Instant::now(),
            started_at: now,
            behind_ms: Arc::clone(&behind_ms),
        };
        let inner = Embedded::start(disk.same_tables(), disk.reader(), clock, &EmbeddedLimits::default()).unwrap();
        Arc::new(Self { inner, behind_ms, state: Mutex::default() })
    }

    pub(crate) fn inner(&self) -> Embedded {
        self.inner.clone()
    }

    /// How often `call` was made.
    pub(crate) fn calls(&self, call: &str) -> usize {
        self.state.lock().calls.get(call).copied().unwrap_or(0)
    }

    /// The next `times` calls fail and are not carried out.
    pub(crate) fn fail(&self, call: &'static str, times: usize, error: StoreError) {
        self.state.lock().faults.insert(call, (error, times));
    }

    /// The next `times` calls are carried out and return [`StoreError::InDoubt`].
    pub(crate) fn doubt(&self, call: &'static str, times: usize) {
        self.state.lock().doubts.insert(call, times);
    }

    /// Sets the clock back just before the next call is carried out.
    pub(crate) fn set_back(&self, call: &'static str, ms: u64) {
        self.state.lock().set_backs.insert(call, ms);
    }

    /// Sets the clock back or forward at once.
    pub(crate) fn set_clock_by_ms(&self, ms: i64) {
        self.behind_ms.fetch_sub(ms.cast_unsigned(), Ordering::SeqCst);
    }

    /// Whether this call returns [`StoreError::InDoubt`]. Counts it if so.
    fn take_doubt(&self, call: &'static str) -> bool {
        let mut state = self.state.lock();
        let doubts = state.doubts.entry(call).or_default();
        let is_doubted = *doubts > 0;
        *doubts = doubts.saturating_sub(1);
        is_doubted
    }

    /// From now on each of these calls waits for [`Hold::answer_one`] after it was carried out.
    pub(crate) fn hold(&self, call: &'static str) -> Hold {
        let hold = Hold { carried_out: Arc::new(Semaphore::new(0)), answered: Arc::new(Semaphore::new(0)) };
        self.state.lock().holds.insert(call, hold.clone());
        hold
    }

    /// Counts a call. Returns the error that it was told to fail with, if any.
    fn count_or_fail(&self, call: &'static str) -> Result<(), StoreError> {
        let mut state = self.state.lock();
        *state.calls.entry(call).or_default() += 1;
        match state.faults.get_mut(call) {
            Some((error, times)) if *times > 0 => {
                *times -= 1;
                Err(error.clone())
            }
            _ => Ok(()),
        }
    }

    async fn carry_out<T: Send + 'static>(
        &self,
        call: &'static str,
        work: impl AsyncFnOnce(Embedded) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.count_or_fail(call)?;
        if let Some(ms) = self.state.lock().set_backs.remove(call) {
            self.behind_ms.fetch_add(ms, Ordering::SeqCst);
        }
        let inner = self.inner.clone();
        // Paused time does not move while a blocking task runs.
        let work = tokio::task::spawn_blocking(move || Handle::current().block_on(work(inner)));
        let answer = work.await.unwrap_or_else(|_| Err(StoreError::Stopped("the process ends".into())));
        let hold = self.state.lock().holds.get(call).cloned();
        if let Some(hold) = hold {
            hold.carried_out.add_permits(1);
            hold.answered.acquire().await.unwrap().forget();
        }
        if self.take_doubt(call) { Err(StoreError::InDoubt("the line was cut".into())) } else { answer }
    }
}

#[async_trait]
impl Store for TestStore {
    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.count_or_fail("now")?;
        // A store on another machine would not answer at once either.
        tokio::task::yield_now().await;
        self.inner.now().await
    }

    async fn create(&self, new: NewTask) -> Result<CreateResult, StoreError> {
        self.carry_out("create", async move |inner| inner.create(new).await).await
    }

    async fn find_created(&self, owner: &Owner, key: &IdempotencyKey) -> Result<Option<Snapshot>, StoreError> {
        self.count_or_fail("find_created")?;
        self.inner.find_created(owner, key).await
    }

    async fn read(&self, key: &TaskKey) -> Result<Snapshot, StoreError> {
        self.count_or_fail("read")?;
        self.inner.read(key).await
    }

    async fn apply(&self, key: &TaskKey, event: Event) -> Result<CommitResult, StoreError> {
        let key = key.clone();
        self.carry_out(event.name(), async move |inner| inner.apply(&key, event).await).await
    }

    async fn claim(&self, claim: ClaimRequest) -> Result<Vec<ClaimedTask>, StoreError> {
        self.carry_out("claim", async move |inner| inner.claim(claim).await).await
    }

    async fn list(&self, query: &ListQuery) -> Result<TaskPage, StoreError> {
        self.inner.list(query).await
    }

    async fn children(&self, key: &TaskKey) -> Result<Vec<TaskId>, StoreError> {
        self.inner.children(key).await
    }

    async fn due(&self, limit: usize) -> Result<DueTasks, StoreError> {
        self.count_or_fail("due")?;
        self.inner.due(limit).await
    }

    async fn next_queued(&self, tools: &[ToolRef]) -> Result<Option<Timestamp>, StoreError> {
        self.count_or_fail("next_queued")?;
        self.inner.next_queued(tools).await
    }

    async fn count_open_tasks(&self) -> Result<Vec<TaskCount>, StoreError> {
        self.count_or_fail("count_open_tasks")?;
        self.inner.count_open_tasks().await
    }

    fn is_shared(&self) -> bool {
        self.inner.is_shared()
    }

    async fn join(&self, node: NodeId, lease_ms: Option<u64>, serves: &[ToolRef]) -> Result<(), StoreError> {
        self.inner.join(node, lease_ms, serves).await
    }

    async fn unserved(&self) -> Result<Vec<ToolRef>, StoreError> {
        self.count_or_fail("unserved")?;
        self.inner.unserved().await
    }

    async fn held(&self, node: NodeId, after: Option<&TaskKey>, limit: usize) -> Result<Vec<HeldAttempt>, StoreError> {
        self.count_or_fail("held")?;
        self.inner.held(node, after, limit).await
    }

    async fn ahead_of_clock(&self, limit: usize) -> Result<Vec<TaskKey>, StoreError> {
        self.count_or_fail("ahead_of_clock")?;
        self.inner.ahead_of_clock(limit).await
    }

    async fn orphans(&self, limit: usize) -> Result<Vec<HeldAttempt>, StoreError> {
        self.count_or_fail("orphans")?;
        self.inner.orphans(limit).await
    }

    async fn record(&self, key: &TaskKey, fence: u64, entries: Vec<JournalEntry>) -> Result<(), StoreError> {
        let key = key.clone();
        self.carry_out("record", async move |inner| inner.record(&key, fence, entries).await).await
    }

    async fn asking_child(&self, key: &TaskKey) -> Result<Option<TaskId>, StoreError> {
        self.inner.asking_child(key).await
    }

    async fn journal(&self, key: &TaskKey, epoch: u32) -> Result<Vec<JournalEntry>, StoreError> {
        self.count_or_fail("journal")?;
        self.inner.journal(key, epoch).await
    }

    async fn question(&self, key: &TaskKey, question: &QuestionKey) -> Result<Option<JournalEntry>, StoreError> {
        self.count_or_fail("question")?;
        self.inner.question(key, question).await
    }

    async fn history(&self, key: &TaskKey) -> Result<TaskHistory, StoreError> {
        self.count_or_fail("history")?;
        self.inner.history(key).await
    }

    async fn progress(&self, key: &TaskKey, fence: u64, progress: Progress) -> Result<(), StoreError> {
        self.count_or_fail("progress")?;
        self.inner.progress(key, fence, progress).await
    }

    fn watch(&self, key: &TaskKey) -> Watch {
        self.inner.watch(key)
    }

    fn watch_queue(&self) -> Watch {
        self.inner.watch_queue()
    }

    async fn secret(&self, name: &str, fresh: [u8; 32]) -> Result<[u8; 32], StoreError> {
        let name = name.to_owned();
        self.carry_out("secret", async move |inner| inner.secret(&name, fresh).await).await
    }

    async fn stopped(&self) -> String {
        self.inner.stopped().await
    }
}

/// The store's clock. It follows the runtime's time, which a test can pause, and can be set back.
#[derive(Debug)]
struct TokioClock {
    runtime: Handle,
    started: Instant,
    started_at: Timestamp,
    behind_ms: Arc<AtomicU64>,
}

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        // The store's writer runs on a thread outside of the runtime, where `Instant` ignores the paused time.
        let _in_runtime = self.runtime.enter();
        let now = self.started_at.plus_ms(u64::try_from(self.started.elapsed().as_millis()).unwrap());
        // The difference is below zero, and so wraps, when the clock is ahead.
        Timestamp::from_ms(now.as_ms().wrapping_sub(self.behind_ms.load(Ordering::SeqCst)))
    }
}
