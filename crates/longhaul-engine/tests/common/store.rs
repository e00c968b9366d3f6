//! The memory store, with a hand on it: calls can be counted, made to fail, and answered late.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use longhaul_store::embedded::EmbeddedLimits;
use longhaul_store::memory::MemoryDisk;
use longhaul_store::{
    ClaimRequest, ClaimedTask, Clock, CommitResult, DueTasks, Embedded, HeldAttempt, ListQuery, NewTask, Snapshot,
    Store, StoreError, TaskCount, TaskPage, Watch,
};
use longhaul_task::{Event, JournalEntry, NodeId, Progress, TaskId, TaskKey, Timestamp, ToolRef};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// Calls go by the name of the method, or of the event that is applied.
#[derive(Debug)]
pub struct TestStore {
    inner: Embedded,
    behind_ms: Arc<AtomicU64>,
    state: Mutex<TestStoreState>,
}

#[derive(Debug, Default)]
struct TestStoreState {
    calls: HashMap<&'static str, usize>,
    /// What the next calls are answered with, instead of being carried out, and how often.
    faults: HashMap<&'static str, (StoreError, usize)>,
    holds: HashMap<&'static str, Hold>,
    /// The number of next calls that are carried out and answered with `InDoubt`.
    doubts: HashMap<&'static str, usize>,
    /// By how much the clock goes back just before the next call.
    set_backs: HashMap<&'static str, u64>,
}

/// Calls that are carried out, and whose answers are kept back.
#[derive(Debug, Clone)]
pub struct Hold {
    carried_out: Arc<Semaphore>,
    answered: Arc<Semaphore>,
}

impl Hold {
    /// Waits until one more call was carried out.
    pub async fn carried_out(&self) {
        super::must_come("a call to hold back", self.carried_out.acquire()).await.unwrap().forget();
    }

    /// Lets one call be answered.
    pub fn let_go(&self) {
        self.answered.add_permits(1);
    }
}

impl TestStore {
    pub fn empty() -> Arc<Self> {
        Self::open(&MemoryDisk::default(), super::START)
    }

    /// The store of a process that begins then, on what is there.
    pub fn open(disk: &MemoryDisk, now: Timestamp) -> Arc<Self> {
        let behind_ms = Arc::new(AtomicU64::new(0));
        let behind = Arc::clone(&behind_ms);
        let clock = TokioClock { runtime: Handle::current(), begin: Instant::now(), origin: now, behind };
        let inner = Embedded::start(disk.same_tables(), disk.reader(), clock, &EmbeddedLimits::default()).unwrap();
        Arc::new(Self { inner, behind_ms, state: Mutex::default() })
    }

    pub fn inner(&self) -> Embedded {
        self.inner.clone()
    }

    /// How often that was called.
    pub fn calls(&self, of: &str) -> usize {
        self.state.lock().calls.get(of).copied().unwrap_or(0)
    }

    /// So many calls of that kind fail.
    pub fn fail(&self, of: &'static str, times: usize, error: StoreError) {
        self.state.lock().faults.insert(of, (error, times));
    }

    /// The next calls of this kind are carried out and answered with `InDoubt`.
    pub fn doubt(&self, of: &'static str, times: usize) {
        self.state.lock().doubts.insert(of, times);
    }

    /// The clock goes back when the next call of that kind comes.
    pub fn set_back(&self, of: &'static str, ms: u64) {
        self.state.lock().set_backs.insert(of, ms);
    }

    fn is_doubted(&self, of: &'static str) -> bool {
        let mut state = self.state.lock();
        let doubts = state.doubts.entry(of).or_default();
        let doubted = *doubts > 0;
        *doubts = doubts.saturating_sub(1);
        doubted
    }

    /// From now on calls of that kind are answered only when they are let go.
    pub fn hold(&self, of: &'static str) -> Hold {
        let hold = Hold { carried_out: Arc::new(Semaphore::new(0)), answered: Arc::new(Semaphore::new(0)) };
        self.state.lock().holds.insert(of, hold.clone());
        hold
    }

    /// Answers at once again.
    pub fn hold_no_more(&self, of: &'static str) {
        self.state.lock().holds.remove(of);
    }

    fn disturbed(&self, of: &'static str) -> Result<(), StoreError> {
        let mut state = self.state.lock();
        *state.calls.entry(of).or_default() += 1;
        match state.faults.get_mut(of) {
            Some((error, times)) if *times > 0 => {
                *times -= 1;
                Err(error.clone())
            }
            _ => Ok(()),
        }
    }

    async fn carry_out<T: Send + 'static>(
        &self,
        of: &'static str,
        work: impl AsyncFnOnce(Embedded) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.disturbed(of)?;
        if let Some(ms) = self.state.lock().set_backs.remove(of) {
            self.behind_ms.fetch_add(ms, Ordering::SeqCst);
        }
        let inner = self.inner.clone();
        // Paused time does not move while a blocking task runs.
        let carried_out = tokio::task::spawn_blocking(move || Handle::current().block_on(work(inner)));
        let answer = carried_out.await.unwrap_or_else(|_| Err(StoreError::Stopped("the process ends".into())));
        let hold = self.state.lock().holds.get(of).cloned();
        if let Some(hold) = hold {
            hold.carried_out.add_permits(1);
            hold.answered.acquire().await.unwrap().forget();
        }
        if self.is_doubted(of) { Err(StoreError::InDoubt("the line was cut".into())) } else { answer }
    }
}

#[async_trait]
impl Store for TestStore {
    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.disturbed("now")?;
        // As from a server: not at once.
        tokio::task::yield_now().await;
        self.inner.now().await
    }

    async fn create(&self, new: NewTask) -> Result<CommitResult, StoreError> {
        self.carry_out("create", async move |inner| inner.create(new).await).await
    }

    async fn read(&self, key: &TaskKey) -> Result<Snapshot, StoreError> {
        self.disturbed("read")?;
        self.inner.read(key).await
    }

    async fn apply(&self, key: &TaskKey, event: Event) -> Result<CommitResult, StoreError> {
        let key = key.clone();
        self.carry_out(event.name(), async move |inner| inner.apply(&key, event).await).await
    }

    async fn claim(&self, claim: ClaimRequest) -> Result<Vec<ClaimedTask>, StoreError> {
        self.carry_out("claim", async move |inner| inner.claim(claim).await).await
    }

    async fn list(&self, of: &ListQuery) -> Result<TaskPage, StoreError> {
        self.inner.list(of).await
    }

    async fn children(&self, key: &TaskKey) -> Result<Vec<TaskId>, StoreError> {
        self.inner.children(key).await
    }

    async fn due(&self, limit: usize) -> Result<DueTasks, StoreError> {
        self.disturbed("due")?;
        self.inner.due(limit).await
    }

    async fn next_queued(&self, tools: &[ToolRef]) -> Result<Option<Timestamp>, StoreError> {
        self.disturbed("next_queued")?;
        self.inner.next_queued(tools).await
    }

    async fn count_open_tasks(&self) -> Result<Vec<TaskCount>, StoreError> {
        self.disturbed("count_open_tasks")?;
        self.inner.count_open_tasks().await
    }

    fn is_shared(&self) -> bool {
        self.inner.is_shared()
    }

    async fn join(&self, node: NodeId, lease_ms: Option<u64>, serves: &[ToolRef]) -> Result<(), StoreError> {
        self.inner.join(node, lease_ms, serves).await
    }

    async fn unserved(&self) -> Result<Vec<ToolRef>, StoreError> {
        self.disturbed("unserved")?;
        self.inner.unserved().await
    }

    async fn held(&self, node: NodeId, after: Option<&TaskKey>, limit: usize) -> Result<Vec<HeldAttempt>, StoreError> {
        self.disturbed("held")?;
        self.inner.held(node, after, limit).await
    }

    async fn orphans(&self, limit: usize) -> Result<Vec<HeldAttempt>, StoreError> {
        self.disturbed("orphans")?;
        self.inner.orphans(limit).await
    }

    async fn record(&self, key: &TaskKey, fence: u64, record: JournalEntry) -> Result<JournalEntry, StoreError> {
        let key = key.clone();
        self.carry_out("record", async move |inner| inner.record(&key, fence, record).await).await
    }

    async fn records(&self, key: &TaskKey, epoch: u32) -> Result<Vec<JournalEntry>, StoreError> {
        self.disturbed("records")?;
        self.inner.records(key, epoch).await
    }

    async fn progress(&self, key: &TaskKey, fence: u64, progress: Progress) -> Result<(), StoreError> {
        self.disturbed("progress")?;
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

/// The runtime's clock, paused or not, as the store's own.
#[derive(Debug)]
struct TokioClock {
    runtime: Handle,
    begin: Instant,
    origin: Timestamp,
    behind: Arc<AtomicU64>,
}

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        // The writer's thread does not belong to the runtime, whose time it is.
        let _inside = self.runtime.enter();
        let ahead = self.origin.plus_ms(u64::try_from(self.begin.elapsed().as_millis()).unwrap());
        Timestamp::from_ms(ahead.as_ms() - self.behind.load(Ordering::SeqCst))
    }
}
