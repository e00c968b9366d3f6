//! An embedded store: one process, one writer thread, any [`Disk`].
//!
//! ```text
//!  create ┐                    ┌ begin ─ carry out each ─ commit (fsync) ┐
//!  apply  ├─► queue ─► writer ─┤                                         ├─► publish ─► wake ─► answer
//!  claim  ┘    (whatever is    └  a refusal fails only its own request   ┘   (cache)   (watch)
//!               waiting: one batch)
//!  read ─► cache ─► (miss) reader
//! ```

mod batch_changes;
mod batch_transaction;
mod disk;
mod failure_log;
mod task_cache;
mod turns;
mod write_request;
mod writer;
mod writer_loop;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::thread;

use async_trait::async_trait;
use longhaul_task::{Event, JournalEntry, NodeId, Owner, Progress, QuestionKey, TaskId, TaskKey, Timestamp, ToolRef};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot, watch};

pub use self::disk::{Disk, DiskError, Reader, Transaction};
use self::failure_log::FailureLog;
use self::task_cache::TaskCache;
pub use self::write_request::WriteRequest;
use self::write_request::{UnsavedProgress, WriteResponse};
use self::writer::Writer;
use self::writer_loop::WriterMessage;
pub use self::writer_loop::{Batch, WriterLoop};
use crate::clock::ClockWatch;
use crate::{
    ClaimRequest, ClaimedTask, Clock, CommitResult, CreateResult, DueTasks, HeldAttempt, IdempotencyKey, ListQuery,
    NewTask, Snapshot, Store, StoreError, TaskCount, TaskHistory, TaskPage, Watch, Watchers,
};

/// Attempts per read while attempts of dead nodes are searched.
const HELD_PAGE: usize = 1_000;

/// The reason that callers get after the store was closed.
const CLOSED: &str = "it is closed";

#[derive(Debug, Clone)]
pub struct EmbeddedLimits {
    /// Memory for settled tasks, so that they can be read without the disk.
    pub cache_bytes_max: u64,
    /// Requests in the queue of the writer. If it is full, callers wait.
    pub waiting_max: usize,
    /// Requests in one transaction.
    pub batch_max: usize,
    /// The least time between two writes of progress.
    pub progress_ms_min: u64,
}

impl Default for EmbeddedLimits {
    fn default() -> Self {
        Self { cache_bytes_max: 128 << 20, waiting_max: 4_096, batch_max: 1_024, progress_ms_min: 1_000 }
    }
}

/// A store in this process, on any [`Disk`]. Clones are handles on the same store.
#[derive(Clone)]
pub struct Embedded {
    inner: Arc<EmbeddedInner>,
}

struct EmbeddedInner {
    clock: Arc<dyn Clock>,
    clock_watch: Arc<ClockWatch>,
    reader: Arc<dyn Reader>,
    cache: Arc<TaskCache>,
    watchers: Arc<Watchers>,
    requests: mpsc::Sender<WriterMessage>,
    unsaved_progress: Arc<Mutex<UnsavedProgress>>,
    /// The nodes of this process. Any other node is dead: the lock on the disk excludes other processes.
    nodes: Mutex<HashMap<NodeId, LocalNode>>,
    failure_log: Arc<FailureLog>,
    stopped: watch::Receiver<Option<String>>,
}

/// A node of this process.
struct LocalNode {
    /// The end of its lease. `None`: as long as the process runs.
    until: Option<Timestamp>,
    serves: Vec<ToolRef>,
}

impl LocalNode {
    fn is_alive(&self, now: Timestamp) -> bool {
        self.until.is_none_or(|until| now < until)
    }
}

/// The hash function of the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hashing {
    /// A random seed per process, so that a requestor cannot choose IDs that collide.
    Random,
    /// A fixed seed, so that the simulator can repeat a history.
    Fixed,
}

impl Embedded {
    /// Opens a store whose writer runs on a thread of its own. The thread ends when the last handle is dropped.
    pub fn start(
        disk: impl Disk,
        reader: impl Reader,
        clock: impl Clock,
        limits: &EmbeddedLimits,
    ) -> std::io::Result<Self> {
        let (store, writer) = Self::with_writer_loop(disk, reader, clock, limits, Hashing::Random);
        thread::Builder::new().name("longhaul-writer".into()).spawn(move || writer.run())?;
        Ok(store)
    }

    /// Opens a store whose writer is driven by the caller.
    pub fn with_writer_loop<D: Disk>(
        disk: D,
        reader: impl Reader,
        clock: impl Clock,
        limits: &EmbeddedLimits,
        hashing: Hashing,
    ) -> (Self, WriterLoop<D>) {
        let cache = Arc::new(TaskCache::new(limits.cache_bytes_max, hashing));
        let watchers = Arc::new(Watchers::default());
        let clock: Arc<dyn Clock> = Arc::new(clock);
        let clock_watch = Arc::<ClockWatch>::default();
        let unsaved_progress = Arc::new(Mutex::default());
        let (requests, waiting) = mpsc::channel(limits.waiting_max);
        let (stop, stopped) = watch::channel(None);
        let failure_log = Arc::new(FailureLog::of(disk.name()));
        let reader: Arc<dyn Reader> = Arc::new(reader);
        let writer = WriterLoop {
            writer: Writer::new(disk, Arc::clone(&cache), Arc::clone(&watchers)),
            waiting,
            clock: Arc::clone(&clock),
            clock_watch: Arc::clone(&clock_watch),
            unsaved_progress: Arc::clone(&unsaved_progress),
            progress_saved_at: Timestamp::ZERO,
            limits: limits.clone(),
            reader: Arc::clone(&reader),
            failure_log: Arc::clone(&failure_log),
            stop,
            runtime: Handle::try_current().ok(),
        };
        let nodes = Mutex::default();
        let inner = EmbeddedInner {
            clock,
            clock_watch,
            reader,
            cache,
            watchers,
            requests,
            unsaved_progress,
            nodes,
            failure_log,
            stopped,
        };
        (Self { inner: Arc::new(inner) }, writer)
    }

    /// The number of tasks with a watch.
    pub fn watched(&self) -> usize {
        self.inner.watchers.count()
    }

    async fn ask(&self, request: WriteRequest) -> Result<WriteResponse, StoreError> {
        let (answer, answered) = oneshot::channel();
        let gone = || StoreError::Stopped(CLOSED.into());
        match self.inner.requests.try_send(WriterMessage::Request { request, answer }) {
            Err(TrySendError::Full(message)) => {
                Box::pin(self.inner.requests.send(message)).await.map_err(|_| gone())?;
            }
            sent => sent.map_err(|_| gone())?,
        }
        answered.await.map_err(|_| gone())?
    }

    /// The result of a read. An error is logged for the operator.
    fn report_read<T>(&self, operation: &str, found: Result<T, DiskError>) -> Result<T, StoreError> {
        found.map_err(|error| {
            let error = StoreError::from(error);
            self.inner.failure_log.log_read_error(operation, &error, self.inner.clock.now());
            error
        })
    }
}

#[async_trait]
impl Store for Embedded {
    async fn now(&self) -> Result<Timestamp, StoreError> {
        Ok(self.inner.clock.now())
    }

    async fn create(&self, new: NewTask) -> Result<CreateResult, StoreError> {
        match self.ask(WriteRequest::Create(new)).await? {
            WriteResponse::Created(created) => Ok(created),
            other => Err(mixed_up(&other)),
        }
    }

    async fn find_created(&self, owner: &Owner, key: &IdempotencyKey) -> Result<Option<Snapshot>, StoreError> {
        let Some(keyed) = self.report_read("find_created", self.inner.reader.keyed_task(owner, &key.key))? else {
            return Ok(None);
        };
        let task = TaskKey { owner: owner.clone(), id: keyed.of_request(key)? };
        match self.read(&task).await {
            // The task and its idempotency key were deleted between the two reads.
            Err(StoreError::NotFound) => Ok(None),
            found => found.map(Some),
        }
    }

    async fn read(&self, key: &TaskKey) -> Result<Snapshot, StoreError> {
        if let Some(snapshot) = self.inner.cache.get(key) {
            return Ok(snapshot);
        }
        let deletions = self.inner.cache.deletions();
        let snapshot = self.report_read("read", self.inner.reader.read(key))?.ok_or(StoreError::NotFound)?;
        self.inner.cache.remember(&snapshot, deletions);
        Ok(snapshot)
    }

    async fn apply(&self, key: &TaskKey, event: Event) -> Result<CommitResult, StoreError> {
        self.ask(WriteRequest::Apply(key.clone(), event)).await.and_then(applied)
    }

    async fn claim(&self, claim: ClaimRequest) -> Result<Vec<ClaimedTask>, StoreError> {
        match self.ask(WriteRequest::Claim(claim)).await? {
            WriteResponse::Claimed(claimed) => Ok(claimed),
            other => Err(mixed_up(&other)),
        }
    }

    async fn list(&self, of: &ListQuery) -> Result<TaskPage, StoreError> {
        let mut page = self.report_read("list", self.inner.reader.list(of))?;
        for listed in &mut page.tasks {
            // The cache may be newer than the page. A caller must not see an older state than an earlier read returned.
            if let Some(cached) = self.inner.cache.get(&listed.task.key) {
                *listed = cached;
            }
        }
        Ok(page)
    }

    async fn children(&self, key: &TaskKey) -> Result<Vec<TaskId>, StoreError> {
        self.report_read("children", self.inner.reader.children(key))
    }

    async fn asking_child(&self, key: &TaskKey) -> Result<Option<TaskId>, StoreError> {
        self.report_read("asking_child", self.inner.reader.asking_child(key))
    }

    async fn due(&self, limit: usize) -> Result<DueTasks, StoreError> {
        let now = self.inner.clock.now();
        let (keys, next) = self.report_read("due", self.inner.reader.due(now, limit))?;
        let mut tasks = Vec::with_capacity(keys.len());
        for key in &keys {
            match self.read(key).await {
                Ok(snapshot) => tasks.push(snapshot.task),
                // Deleted since the first read, or unreadable, which the read has logged.
                Err(StoreError::NotFound | StoreError::Damaged(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(DueTasks { now, tasks, next })
    }

    async fn ahead_of_clock(&self, limit: usize) -> Result<Vec<TaskKey>, StoreError> {
        let now = self.inner.clock.now();
        let Some(jump) = self.inner.clock_watch.compare(now) else { return Ok(Vec::new()) };
        let ahead = self.report_read("ahead_of_clock", self.inner.reader.began_after(now, limit))?;
        if ahead.is_empty()
            && self.inner.clock_watch.handled(jump)
            && let Some(back_ms) = jump.back_ms()
        {
            tracing::warn!(store = self.inner.failure_log.store(), back_ms, "the clock was set back");
        }
        Ok(ahead)
    }

    async fn next_queued(&self, tools: &[ToolRef]) -> Result<Option<Timestamp>, StoreError> {
        let queued = self.report_read("next_queued", self.inner.reader.queued_tools())?.into_iter();
        Ok(queued.filter(|(tool, _)| tools.contains(tool)).map(|(_, not_before)| not_before).min())
    }

    async fn count_open_tasks(&self) -> Result<Vec<TaskCount>, StoreError> {
        self.report_read("count_open_tasks", self.inner.reader.count_open_tasks())
    }

    fn is_shared(&self) -> bool {
        false
    }

    async fn join(&self, node: NodeId, lease_ms: Option<u64>, serves: &[ToolRef]) -> Result<(), StoreError> {
        let now = self.inner.clock.now();
        let mut nodes = self.inner.nodes.lock();
        if nodes.get(&node).is_some_and(|member| !member.is_alive(now)) {
            return Err(StoreError::Lapsed);
        }
        let until = lease_ms.map(|ms| now.plus_ms(ms));
        nodes.insert(node, LocalNode { until, serves: serves.to_vec() });
        Ok(())
    }

    async fn unserved(&self) -> Result<Vec<ToolRef>, StoreError> {
        let queued = self.report_read("unserved", self.inner.reader.queued_tools())?;
        let now = self.inner.clock.now();
        let nodes = self.inner.nodes.lock();
        let served = |tool: &ToolRef| nodes.values().any(|member| member.is_alive(now) && member.serves.contains(tool));
        Ok(queued.into_iter().map(|(tool, _)| tool).filter(|tool| !served(tool)).collect())
    }

    async fn orphans(&self, limit: usize) -> Result<Vec<HeldAttempt>, StoreError> {
        let now = self.inner.clock.now();
        let alive = |node: &NodeId| self.inner.nodes.lock().get(node).is_some_and(|member| member.is_alive(now));
        self.report_read("orphans", orphans(&*self.inner.reader, alive, limit))
    }

    async fn held(&self, node: NodeId, after: Option<&TaskKey>, limit: usize) -> Result<Vec<HeldAttempt>, StoreError> {
        self.report_read("held", held(&*self.inner.reader, |holder| *holder == node, after.cloned(), limit))
    }

    async fn record(&self, key: &TaskKey, fence: u64, entries: Vec<JournalEntry>) -> Result<(), StoreError> {
        match self.ask(WriteRequest::Record(key.clone(), fence, entries)).await? {
            WriteResponse::Recorded => Ok(()),
            other => Err(mixed_up(&other)),
        }
    }

    async fn journal(&self, key: &TaskKey, epoch: u32) -> Result<Vec<JournalEntry>, StoreError> {
        self.report_read("journal", self.inner.reader.journal(key, epoch))
    }

    async fn question(&self, key: &TaskKey, question: &QuestionKey) -> Result<Option<JournalEntry>, StoreError> {
        self.report_read("question", self.inner.reader.question(key, question))
    }

    async fn history(&self, key: &TaskKey) -> Result<TaskHistory, StoreError> {
        self.report_read("history", self.inner.reader.history(key))
    }

    async fn progress(&self, key: &TaskKey, fence: u64, progress: Progress) -> Result<(), StoreError> {
        let progress = Arc::new(progress);
        if let Some(attempt) = self.inner.cache.show_progress(key, fence, Arc::clone(&progress)) {
            self.inner.unsaved_progress.lock().insert(key.clone(), (attempt, progress));
            self.inner.watchers.changed(key);
        }
        Ok(())
    }

    fn watch(&self, key: &TaskKey) -> Watch {
        self.inner.watchers.follow(key)
    }

    fn watch_queue(&self) -> Watch {
        self.inner.watchers.follow_queue()
    }

    async fn secret(&self, name: &str, fresh: [u8; 32]) -> Result<[u8; 32], StoreError> {
        match self.ask(WriteRequest::Secret(name.to_owned(), fresh)).await? {
            WriteResponse::Secret(secret) => Ok(secret),
            other => Err(mixed_up(&other)),
        }
    }

    async fn stopped(&self) -> String {
        let mut stopped = self.inner.stopped.clone();
        match stopped.wait_for(Option::is_some).await {
            Ok(reason) => reason.clone().unwrap_or_default(),
            Err(_) => CLOSED.to_owned(),
        }
    }

    async fn check(&self) -> Result<(), StoreError> {
        let request = match self.inner.failure_log.write_error() {
            None => WriteRequest::Verify,
            // While `/healthz` fails, there may be no other requests, so only this write can find out that the disk
            // works again.
            Some(_) => WriteRequest::Check,
        };
        self.ask(request).await.map(|_| ())
    }

    async fn close(&self) {
        let mut stopped = self.inner.stopped.clone();
        // An error means that the store is closing already.
        let _ = self.inner.requests.send(WriterMessage::Close).await;
        // The writer drops its sender last.
        while stopped.changed().await.is_ok() {}
    }
}

impl fmt::Debug for Embedded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Embedded").finish_non_exhaustive()
    }
}

/// Attempts of nodes that are not alive.
fn orphans(reader: &dyn Reader, alive: impl Fn(&NodeId) -> bool, limit: usize) -> Result<Vec<HeldAttempt>, DiskError> {
    held(reader, |node| !alive(node), None, limit)
}

/// Attempts of these nodes, after this key, in the order of the keys.
fn held(
    reader: &dyn Reader,
    of: impl Fn(&NodeId) -> bool,
    mut after: Option<TaskKey>,
    limit: usize,
) -> Result<Vec<HeldAttempt>, DiskError> {
    let mut found = Vec::new();
    while found.len() < limit {
        let page = reader.held(after.as_ref(), HELD_PAGE)?;
        let Some(last) = page.last() else { break };
        after = Some(last.key.clone());
        found.extend(page.into_iter().filter(|attempt| of(&attempt.node)));
    }
    found.truncate(limit);
    Ok(found)
}

fn applied(response: WriteResponse) -> Result<CommitResult, StoreError> {
    match response {
        WriteResponse::Applied(applied) => Ok(applied),
        other => Err(mixed_up(&other)),
    }
}

fn mixed_up(response: &WriteResponse) -> StoreError {
    StoreError::Unavailable(format!("the writer gave an answer of another kind: {response:?}"))
}
