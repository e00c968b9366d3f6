//! The async shell: tells the core what happened and does what it says.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use foldhash::HashMap;
use futures_util::future::BoxFuture;
use longhaul_store::{
    ClaimRequest, ClaimedTask, CommitResult, CreateResult, HeldAttempt, IdempotencyKey, NewTask, Store, StoreError,
    ToolClaim,
};
use longhaul_task::transition::{Create, Lose};
use longhaul_task::{ChildRange, Event, Json, NodeId, Owner, Task, TaskKey, TransitionError};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot};
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::attempt::AttemptResult;
use crate::core::{Action, CommitId, Core, Input};
use crate::journal::Journal;
use crate::log::Listeners;
use crate::registry::{RegisteredTool, Registry};
use crate::service;
use crate::task_link::TaskLink;
use crate::wait_tracker::{WaitFor, WaitTracker};
use crate::{BudgetUse, CtxError, EngineError, EngineLimits, EngineTool, RandomSource, Share, attempt, audit};

/// What all handles on an engine share, and all of its attempts and services.
pub(crate) struct EngineInner {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) random: Arc<dyn RandomSource>,
    pub(crate) node: NodeId,
    pub(crate) limits: EngineLimits,
    pub(crate) core: Mutex<Core>,
    pub(crate) tools: Registry,
    running: Mutex<HashMap<TaskKey, RunningAttempt>>,
    /// The ends of attempts that the store could not write yet.
    pub(crate) unwritten: Mutex<BTreeMap<TaskKey, Event>>,
    pub(crate) listeners: Arc<Listeners>,
    /// Wakes the service that waits for the next due task.
    pub(crate) due: service::DueAlarm,
    /// Wakes the service that waits for the next queued task.
    pub(crate) queue: Notify,
    /// Wakes the service that looks for attempts this node was given and never heard of.
    pub(crate) doubt: Notify,
    /// Wakes the service that takes the store's counts over.
    pub(crate) recount: Notify,
    /// Wakes everything that sleeps until a time of the store's clock, after that clock was set.
    pub(crate) clock_moved: Notify,
    pub(crate) clock_jumps: service::clock::ClockJumps,
    pub(crate) stopping: CancellationToken,
    /// Cancelled when nothing new is taken any more.
    pub(crate) draining: CancellationToken,
    /// Since when nothing new is taken.
    pub(crate) draining_since: OnceLock<Instant>,
    pub(crate) tracker: TaskTracker,
}

/// What the shell keeps of an attempt.
pub(crate) struct RunningAttempt {
    fence: u64,
    /// What it is to run on, until it is started.
    start: Option<(Arc<Task>, Json)>,
    stop: CancellationToken,
    abort: Option<AbortHandle>,
    /// Closed when the handler's future is gone.
    gone: Option<oneshot::Receiver<()>>,
    /// Its handler has returned: what is left is to write its end.
    returned: Arc<AtomicBool>,
    /// Branches that wait for a worker.
    resuming: Vec<oneshot::Sender<()>>,
    wait_tracker: Arc<WaitTracker>,
    /// The link of its context, while the handler runs.
    link: Weak<TaskLink>,
}

impl fmt::Debug for EngineInner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineInner").field("node", &self.node).finish_non_exhaustive()
    }
}

impl EngineInner {
    /// An engine that knows its tools and has not begun to work.
    pub(crate) fn new(
        store: Arc<dyn Store>,
        tools: Vec<EngineTool>,
        limits: EngineLimits,
        random: Arc<dyn RandomSource>,
    ) -> Self {
        let node = NodeId::mint(random.bits());
        let mut core = Core::new(node, limits.clone());
        for tool in &tools {
            core.register(tool.tool.clone(), tool.limits.clone());
        }
        Self {
            store,
            random,
            node,
            limits,
            core: Mutex::new(core),
            tools: Registry::new(tools),
            running: Mutex::default(),
            unwritten: Mutex::default(),
            listeners: Arc::default(),
            due: service::DueAlarm::default(),
            queue: Notify::new(),
            doubt: Notify::new(),
            recount: Notify::new(),
            clock_moved: Notify::new(),
            clock_jumps: service::clock::ClockJumps::default(),
            stopping: CancellationToken::new(),
            draining: CancellationToken::new(),
            draining_since: OnceLock::new(),
            tracker: TaskTracker::new(),
        }
    }

    pub(crate) fn registered(&self, tool: &Arc<str>) -> Result<Arc<RegisteredTool>, EngineError> {
        self.tools.get(tool).ok_or_else(|| EngineError::NoSuchTool(Arc::clone(tool)))
    }

    /// Admits an ordinary call of a tool. It counts until the share is dropped.
    pub(crate) fn admit_call(
        &self,
        tool: &Arc<str>,
        owner: &Owner,
        input: &Json,
    ) -> Result<(Arc<RegisteredTool>, Share), EngineError> {
        if self.draining_since.get().is_some() {
            return Err(EngineError::Draining);
        }
        self.tools.admit_call(tool, owner, input)
    }

    /// The use of everything that owners share, one entry per resource.
    pub(crate) fn budgets(&self) -> Vec<BudgetUse> {
        let mut sums: Vec<BudgetUse> = Vec::new();
        let calls = self.tools.budgets();
        for usage in self.core.lock().budgets().chain(calls) {
            match sums.iter_mut().find(|sum| sum.resource == usage.resource) {
                Some(sum) => sum.add(&usage),
                None => sums.push(usage),
            }
        }
        sums
    }

    /// Applies an event and does what follows from it. Every event of the engine takes this way.
    pub(crate) async fn apply(self: &Arc<Self>, key: &TaskKey, event: Event) -> Result<Arc<Task>, StoreError> {
        let mut under_way = CommitUnderWay::begin(self);
        if let Event::Spawn(spawn) = &event {
            under_way.spawn(&key.owner, spawn.children.len());
        }
        let applied = self.store.apply(key, event).await.inspect_err(|error| self.resolve_doubt(error))?;
        audit::applied(&applied);
        let CommitResult { task, effects } = applied;
        self.due.at_latest(task.due_at());
        if !effects.is_empty() {
            self.step(Input::Applied { effects });
        }
        Ok(task)
    }

    /// Ends an attempt that no handler will carry on, by its tool's policy: the task fails or goes back to the queue.
    /// Returns the task, or `None` when the attempt had ended already.
    pub(crate) async fn lose(self: &Arc<Self>, attempt: &HeldAttempt) -> Result<Option<Arc<Task>>, StoreError> {
        self.end_attempt(attempt, false).await
    }

    /// Does the same because this process stops as it was told to, which is no failure of the attempt.
    pub(crate) async fn give_back(self: &Arc<Self>, attempt: &HeldAttempt) -> Result<Option<Arc<Task>>, StoreError> {
        self.end_attempt(attempt, true).await
    }

    async fn end_attempt(
        self: &Arc<Self>,
        attempt: &HeldAttempt,
        is_stop: bool,
    ) -> Result<Option<Arc<Task>>, StoreError> {
        let event = Event::Lose(Lose { node: attempt.node, fence: attempt.fence, is_stop });
        match self.apply(&attempt.key, event).await {
            Ok(task) => Ok(Some(task)),
            Err(StoreError::NotFound | StoreError::Refused(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Tells the core what happened and does what it says.
    pub(crate) fn step(self: &Arc<Self>, input: Input) {
        let actions = self.core.lock().step(input);
        for action in actions {
            self.perform(action);
        }
    }

    fn perform(self: &Arc<Self>, action: Action) {
        match action {
            Action::Start { key, fence } => self.start_attempt(&key, fence),
            Action::Forget { key, fence } => drop(self.forget(&key, fence)),
            Action::Claim { claim, commit } => {
                let engine = Arc::clone(self);
                self.tracker.spawn(async move { engine.claim(claim, commit).await });
            }
            Action::LookAtQueue => self.queue.notify_one(),
            Action::Write { key, fence, event } => {
                let engine = Arc::clone(self);
                self.tracker.spawn(async move { engine.write_end(key, fence, event).await });
            }
            Action::Resume { key, fence } => {
                if let Some(running) = self.running.lock().get_mut(&key).filter(|running| running.fence == fence) {
                    for branch in running.resuming.drain(..) {
                        // A branch that has been dropped meanwhile wants no worker.
                        let _ = branch.send(());
                    }
                }
            }
            Action::Stop { key, fence, grace_ms } => self.stop_attempt(key, fence, grace_ms),
        }
    }

    async fn claim(self: Arc<Self>, claim: ToolClaim, commit: CommitId) {
        let (tool, asked) = (claim.tool.clone(), claim.limit);
        let claim = ClaimRequest { node: self.node, tools: vec![claim] };
        let claimed = self.store.claim(claim).await.unwrap_or_else(|error| {
            tracing::debug!(%tool, %error, "could not claim queued tasks");
            self.resolve_doubt(&error);
            Vec::new()
        });
        let mut tasks = Vec::with_capacity(claimed.len());
        for ClaimedTask { task, input } in claimed {
            self.due.at_latest(task.due_at());
            tasks.push((task.key.clone(), task.fence));
            self.expect(&task, input);
        }
        self.step(Input::Claimed { tool, asked, tasks, commit });
    }

    pub(crate) async fn commit_creation(
        self: &Arc<Self>,
        new: NewTask,
        commit: CommitId,
    ) -> Result<CreateResult, EngineError> {
        let Create { key, tool, claimed_by, first_fence, .. } = &new.create;
        let (key, tool, claimed_by, first_fence) = (key.clone(), tool.clone(), *claimed_by, *first_fence);
        let (input, request) = (new.input.clone(), new.idempotency.clone());
        let created = match self.store.create(new).await {
            Err(StoreError::InDoubt(cause)) => self.was_created(&key, first_fence, request.as_deref(), cause).await,
            created => created,
        };
        match created {
            Ok(created) if created.existed => {
                self.step(Input::NotCreated { owner: key.owner, tool, claimed: claimed_by.is_some(), commit });
                Ok(created)
            }
            Ok(CreateResult { task, existed }) => {
                audit::created(&task);
                self.due.at_latest(task.due_at());
                let claimed = claimed_by.map(|_| first_fence.saturating_add(1));
                let is_ours = claimed == Some(task.fence);
                if is_ours {
                    self.expect(&task, input);
                }
                self.step(Input::Created { key: key.clone(), tool, claimed, commit });
                // Only after a doubt: its attempt ended before this node knew that it had begun.
                if let Some(fence) = claimed.filter(|_| !is_ours) {
                    self.step(Input::Dropped { key, fence });
                }
                Ok(CreateResult { task, existed })
            }
            Err(error) => {
                self.resolve_doubt(&error);
                self.step(Input::NotCreated { owner: key.owner, tool, claimed: claimed_by.is_some(), commit });
                Err(error.into())
            }
        }
    }

    /// Finds out whether a creation in doubt was written. If the requestor chose the ID, another task may have it; the fences
    /// of that one differ. Under an idempotency key, the store may have found the task of an earlier request instead.
    async fn was_created(
        &self,
        key: &TaskKey,
        first_fence: u64,
        request: Option<&IdempotencyKey>,
        cause: String,
    ) -> Result<CreateResult, StoreError> {
        match self.store.read(key).await {
            Ok(found) if u32::try_from(found.task.fence.wrapping_sub(first_fence)).is_ok() => {
                return Ok(CreateResult { task: found.task, existed: false });
            }
            Ok(_) => return Err(TransitionError::DuplicateId.into()),
            Err(StoreError::NotFound) => {}
            Err(_) => return Err(StoreError::InDoubt(cause)),
        }
        let Some(request) = request else { return Err(StoreError::Unavailable(cause)) };
        match self.store.find_created(&key.owner, request).await {
            Ok(Some(found)) => Ok(CreateResult { task: found.task, existed: true }),
            Ok(None) => Err(StoreError::Unavailable(cause)),
            Err(used @ StoreError::IdempotencyKeyUsed) => Err(used),
            Err(_) => Err(StoreError::InDoubt(cause)),
        }
    }

    /// After a commit in doubt the state of this node may differ from the store: starts the services that compare them.
    fn resolve_doubt(&self, error: &StoreError) {
        if let StoreError::InDoubt(_) = error {
            self.doubt.notify_one();
            self.recount.notify_one();
        }
    }

    /// Makes an attempt known before the core is told, so that a stop cannot miss it.
    fn expect(&self, task: &Arc<Task>, input: Json) {
        let running = RunningAttempt {
            fence: task.fence,
            start: Some((Arc::clone(task), input)),
            stop: CancellationToken::new(),
            abort: None,
            gone: None,
            returned: Arc::default(),
            resuming: Vec::new(),
            wait_tracker: Arc::default(),
            link: Weak::new(),
        };
        let before = self.running.lock().insert(task.key.clone(), running);
        // The attempt before it has lost the task, perhaps to an event that this node has not heard of. One whose handler
        // has returned waits for the answer to its end.
        if let Some(before) = before.filter(|before| !before.returned.load(Ordering::SeqCst)) {
            before.abort.inspect(AbortHandle::abort);
        }
    }

    fn start_attempt(self: &Arc<Self>, key: &TaskKey, fence: u64) {
        let mut all = self.running.lock();
        let Some(running) = all.get_mut(key).filter(|running| running.fence == fence) else { return };
        let Some((task, input)) = running.start.take() else { return };
        let Some(registered) = self.tools.get(&task.tool.name) else { return };
        let link = Arc::new(TaskLink {
            engine: Arc::clone(self),
            journal: Journal::new(task.resumes(), &registered.tool.limits),
            task,
            writing: tokio::sync::Mutex::default(),
            writes_in_background: AtomicBool::new(false),
            applying: Arc::default(),
            runs_since: Mutex::new(Instant::now()),
            last_progress: Mutex::default(),
            stop: running.stop.clone(),
        });
        running.link = Arc::downgrade(&link);
        let engine = Arc::clone(self);
        let key = key.clone();
        let returned = Arc::clone(&running.returned);
        let wait_tracker = Arc::clone(&running.wait_tracker);
        let (lives, gone) = oneshot::channel();
        running.gone = Some(gone);
        // Boxed: the runtime moves the future of a task several times before it begins and when it has ended.
        let attempt = self.tracker.spawn(Box::pin(async move {
            let _lives: oneshot::Sender<()> = lives;
            let input = match attempt::drive(&engine, link, wait_tracker, &registered.tool, input).await {
                AttemptResult::Ended { outcome, entries } => {
                    returned.store(true, Ordering::SeqCst);
                    Input::Ended { key: key.clone(), fence, outcome, entries }
                }
                AttemptResult::Failed { outcome, entries } => {
                    returned.store(true, Ordering::SeqCst);
                    if Box::pin(engine.release(&key, fence, &registered.tool, &outcome, &entries)).await {
                        Input::Dropped { key: key.clone(), fence }
                    } else {
                        Input::Ended { key: key.clone(), fence, outcome, entries }
                    }
                }
                AttemptResult::Dropped => Input::Dropped { key: key.clone(), fence },
            };
            let actions = engine.core.lock().step(input);
            for action in actions {
                match action {
                    // Its own end is written here, without another hop.
                    Action::Write { key, fence, event } => engine.write_end(key, fence, event).await,
                    other => engine.perform(other),
                }
            }
            engine.forget(&key, fence);
        }));
        running.abort = Some(attempt.abort_handle());
    }

    fn stop_attempt(self: &Arc<Self>, key: TaskKey, fence: u64, grace_ms: u64) {
        match self.running.lock().get(&key).filter(|running| running.fence == fence) {
            Some(running) => running.stop.cancel(),
            None => return,
        }
        let engine = Arc::clone(self);
        // Not tracked: a shutdown waits for the handler, not for its grace to be over.
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(grace_ms)).await;
            // Only now, because the word to stop may have overtaken the start.
            if engine.drop_attempt(&key, fence) {
                tracing::info!(task = %key.id, grace_ms, "a cancelled handler did not stop in time and was dropped");
            }
        });
    }

    /// Drops the handler of an attempt that has lost its task; says whether it was still there.
    pub(crate) fn drop_attempt(self: &Arc<Self>, key: &TaskKey, fence: u64) -> bool {
        let handler = self.forget(key, fence).and_then(|running| {
            running.stop.cancel();
            // An end that is being written is left alone: its answer moves the counts.
            let lives = |abort: &AbortHandle| !abort.is_finished() && !running.returned.load(Ordering::SeqCst);
            running.abort.filter(lives).zip(running.gone)
        });
        let dropped = Input::Dropped { key: key.clone(), fence };
        let Some((handler, gone)) = handler else {
            self.step(dropped);
            return false;
        };
        handler.abort();
        // The handler holds its worker until its future is gone, which may be later.
        let engine = Arc::clone(self);
        tokio::spawn(async move {
            // The sender is dropped, never used.
            let _ = gone.await;
            engine.step(dropped);
        });
        true
    }

    pub(crate) fn forget(&self, key: &TaskKey, fence: u64) -> Option<RunningAttempt> {
        let mut all = self.running.lock();
        all.get(key).filter(|running| running.fence == fence)?;
        all.remove(key)
    }

    /// Takes nothing new. Calls that run go on.
    pub(crate) fn drain(self: &Arc<Self>) {
        self.draining_since.get_or_init(Instant::now);
        self.draining.cancel();
        self.step(Input::Drain);
    }

    /// Waits until an attempt that has its answer may go on.
    pub(crate) async fn work_again(
        self: &Arc<Self>,
        key: &TaskKey,
        fence: u64,
        stop: &CancellationToken,
    ) -> Result<(), CtxError> {
        let (resume, resumed) = oneshot::channel();
        match self.running.lock().get_mut(key).filter(|running| running.fence == fence) {
            Some(running) => running.resuming.push(resume),
            None => return Err(CtxError::Cancelled),
        }
        self.step(Input::Busy { key: key.clone(), fence });
        tokio::select! {
            biased;
            () = stop.cancelled() => Err(CtxError::Cancelled),
            resumed = resumed => resumed.map_err(|_| CtxError::Cancelled),
        }
    }

    /// How long an attempt of this process has run by the process's own measurement, not by the store's clock.
    pub(crate) fn ran_ms(&self, key: &TaskKey, fence: u64) -> Option<u64> {
        let link = self.running.lock().get(key).filter(|running| running.fence == fence)?.link.upgrade()?;
        let ran = link.runs_since.lock().elapsed();
        Some(u64::try_from(ran.as_millis()).unwrap_or(u64::MAX))
    }

    /// Tries once more to write the journal entries that the store could not write so far. Returns the number of tasks whose
    /// entries are lost when the process ends.
    pub(crate) async fn write_last_entries(&self) -> usize {
        let links: Vec<_> = self.running.lock().values().filter_map(|running| running.link.upgrade()).collect();
        let mut lost = 0;
        for link in links.iter().filter(|link| link.has_unwritten()) {
            let written = self.store.record(link.key(), link.fence(), link.journal.unwritten()).await;
            lost += usize::from(
                matches!(written, Err(error) if !matches!(error, StoreError::NotFound | StoreError::Refused(_))),
            );
        }
        lost
    }

    /// Whether that attempt is one of this process.
    pub(crate) fn is_running(&self, key: &TaskKey, fence: u64) -> bool {
        self.running.lock().get(key).is_some_and(|running| running.fence == fence)
    }

    /// What each attempt waits for, by its task and fence. `None` if a handler does something other than wait, or has entries
    /// that are not written yet.
    pub(crate) fn waits(&self) -> Option<BTreeMap<(TaskKey, u64), Vec<WaitFor>>> {
        let running = self.running.lock();
        let waits = running.iter().map(|(key, running)| {
            let is_written = || running.link.upgrade().is_some_and(|link| !link.has_unwritten());
            let waits = if running.returned.load(Ordering::SeqCst) {
                // Its end is written when its children have ended.
                vec![WaitFor::Children(ChildRange::ALL)]
            } else {
                running.wait_tracker.waits().filter(|_| is_written())?
            };
            Some(((key.clone(), running.fence), waits))
        });
        waits.collect()
    }

    /// The attempts that this node holds, in the order of their keys: the order must not depend on hashes.
    pub(crate) fn held(&self) -> Vec<(TaskKey, u64)> {
        let mut held: Vec<_> = self.running.lock().iter().map(|(key, running)| (key.clone(), running.fence)).collect();
        held.sort_unstable();
        held
    }
}

/// A commit under way. It counts as ended also when the future that waits for it is dropped.
struct CommitUnderWay<'a> {
    engine: &'a EngineInner,
    commit: CommitId,
    /// The children that it creates.
    children: Option<(Owner, usize)>,
}

impl<'a> CommitUnderWay<'a> {
    fn begin(engine: &'a EngineInner) -> Self {
        Self { engine, commit: engine.core.lock().begin_commit(), children: None }
    }

    /// Counts children that the commit creates before it has returned: a child can end before the core learns that it exists,
    /// and its end must not hide another open task.
    fn spawn(&mut self, owner: &Owner, children: usize) {
        self.engine.core.lock().expect_children(owner, children);
        self.children = Some((owner.clone(), children));
    }
}

impl Drop for CommitUnderWay<'_> {
    fn drop(&mut self) {
        let mut core = self.engine.core.lock();
        if let Some((owner, children)) = self.children.take() {
            core.forget_children(&owner, children);
        }
        core.end_commit(self.commit);
    }
}

/// Completes a future even if its caller goes away: a lost connection does not undo a commit, and what follows from
/// the commit must happen. A shutdown waits for it.
pub(crate) async fn run_to_end<T: Send + 'static>(
    tracker: &TaskTracker,
    future: impl Future<Output = Result<T, EngineError>> + Send + 'static,
) -> Result<T, EngineError> {
    Detachable(Some(Box::pin(tracker.track_future(future)))).await
}

/// A future that is polled by its caller, and moves to a task of its own when the caller drops it. A task from the
/// start would cost every creation a switch.
struct Detachable<T: Send + 'static>(Option<BoxFuture<'static, Result<T, EngineError>>>);

impl<T: Send + 'static> Future for Detachable<T> {
    type Output = Result<T, EngineError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(rest) = &mut self.0 else {
            return Poll::Ready(Err(StoreError::Stopped("it has ended".into()).into()));
        };
        let poll = rest.as_mut().poll(cx);
        if poll.is_ready() {
            self.0 = None;
        }
        poll
    }
}

impl<T: Send + 'static> Drop for Detachable<T> {
    fn drop(&mut self) {
        if let (Some(rest), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(rest);
        }
    }
}
