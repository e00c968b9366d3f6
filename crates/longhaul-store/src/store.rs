//! The trait that every backend implements, and its types.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use longhaul_task::transition::Create;
use longhaul_task::{
    AttemptRecord, Effect, Event, JournalEntry, Json, NodeId, Owner, PhaseName, Progress, QuestionKey, Task, TaskId,
    TaskKey, Timestamp, ToolRef,
};

use crate::{IdempotencyKey, StoreError, Watch};

/// Durable storage for tasks.
///
/// When a write returns `Ok`, it is on stable storage. A read returns only what is committed.
///
/// A backend contains no rules: it loads what an event's [`scope`](Event::scope) names, calls
/// [`longhaul_task::transition::apply`], and writes the change if nothing of what it loaded has changed since. To test
/// a backend of your own, run the suite in the module `contract`.
#[async_trait]
pub trait Store: Send + Sync + fmt::Debug + 'static {
    /// The time by this store's clock.
    async fn now(&self) -> Result<Timestamp, StoreError>;

    /// Creates a task. Refused with [`TransitionError::DuplicateId`](longhaul_task::TransitionError::DuplicateId) if the owner has a task
    /// with this ID.
    ///
    /// If the owner already has a task under the key of the [`IdempotencyKey`], nothing is written: that task is returned if
    /// the same request created it, and [`StoreError::IdempotencyKeyUsed`] if another one did. The look-up and the creation
    /// are one commit. The key is deleted in the commit that deletes the family of the task.
    async fn create(&self, new: NewTask) -> Result<CreateResult, StoreError>;

    /// The task that this request created under its idempotency key; `None` if there is none. Fails with
    /// [`StoreError::IdempotencyKeyUsed`] if another request created a task under the key.
    async fn find_created(&self, owner: &Owner, key: &IdempotencyKey) -> Result<Option<Snapshot>, StoreError>;

    /// Reads the committed state of a task.
    async fn read(&self, key: &TaskKey) -> Result<Snapshot, StoreError>;

    /// Applies an event to a task and commits the change.
    async fn apply(&self, key: &TaskKey, event: Event) -> Result<CommitResult, StoreError>;

    /// Claims queued tasks for a node. A task is never given to two nodes.
    ///
    /// Owners take turns: each owner that has tasks which may be claimed gets one, then each gets another, until the limit
    /// is reached, so that no owner waits for the whole queue of another. The next claim goes on after the owner that was
    /// served last, as far as the backend remembers: another process, or the next one, may begin anywhere. The tasks of
    /// one owner are claimed in the order of (earliest time, time of creation, ID). The tasks of a response are in no
    /// order between owners.
    async fn claim(&self, claim: ClaimRequest) -> Result<Vec<ClaimedTask>, StoreError>;

    /// Reads one page of an owner's tasks, the newest first (in descending order of their IDs, which begin with the
    /// time). Without an owner, reads the tasks of all owners, ordered by owner.
    async fn list(&self, of: &ListQuery) -> Result<TaskPage, StoreError>;

    /// The children of a task, in the order of their creation.
    async fn children(&self, key: &TaskKey) -> Result<Vec<TaskId>, StoreError>;

    /// The first child of a task that has an open question. A backend finds it without reading the other children.
    async fn asking_child(&self, key: &TaskKey) -> Result<Option<TaskId>, StoreError>;

    /// The tasks whose timer, deadline or expiry has been reached, and the time of the next one.
    async fn due(&self, limit: usize) -> Result<DueTasks, StoreError>;

    /// Open tasks whose wait or attempt began later than the clock shows now: the clock has gone back since. The engine
    /// [shortens](longhaul_task::transition::Shorten) them. It asks every few seconds, so this is cheap while the clock has
    /// not gone back.
    async fn ahead_of_clock(&self, limit: usize) -> Result<Vec<TaskKey>, StoreError>;

    /// The earliest time at which a queued task of these tools may be claimed. `None` if none is queued.
    async fn next_queued(&self, tools: &[ToolRef]) -> Result<Option<Timestamp>, StoreError>;

    /// The number of open tasks by owner, tool and phase. The engine initializes its limits from it after a restart.
    async fn count_open_tasks(&self) -> Result<Vec<TaskCount>, StoreError>;

    /// Whether other processes can use this store at the same time.
    fn is_shared(&self) -> bool;

    /// Registers a node and the tools that it serves, or renews its lease. Without a lease the node counts as alive as
    /// long as this process runs; a shared store cannot detect its end, so it requires a lease. A lease that has ended
    /// cannot be renewed ([`StoreError::Lapsed`]), because other nodes may have claimed what the node held.
    async fn join(&self, node: NodeId, lease_ms: Option<u64>, serves: &[ToolRef]) -> Result<(), StoreError>;

    /// The tools of queued tasks that no living node serves.
    async fn unserved(&self) -> Result<Vec<ToolRef>, StoreError>;

    /// Attempts whose node is dead. The engine loses them, so that their tasks fail or run again.
    async fn orphans(&self, limit: usize) -> Result<Vec<HeldAttempt>, StoreError>;

    /// Attempts that this node holds, ordered by key. After a claim that ended with [`StoreError::InDoubt`] the node
    /// finds here what it was given.
    async fn held(&self, node: NodeId, after: Option<&TaskKey>, limit: usize) -> Result<Vec<HeldAttempt>, StoreError>;

    /// Writes journal entries of an attempt without changing the task. The fence is checked in the same commit.
    /// [`JournalEntry::conflict_with`] decides about an entry whose position has one already. Writing the same entries again,
    /// after a commit in doubt, changes nothing.
    async fn record(&self, key: &TaskKey, fence: u64, entries: Vec<JournalEntry>) -> Result<(), StoreError>;

    /// The journal of a task for one [`epoch`](Task::epoch), ordered by position. An attempt reads it once, when it starts.
    async fn journal(&self, key: &TaskKey, epoch: u32) -> Result<Vec<JournalEntry>, StoreError>;

    /// The journal entry of a question. `None` if the task has not asked it.
    async fn question(&self, key: &TaskKey, question: &QuestionKey) -> Result<Option<JournalEntry>, StoreError>;

    /// What happened to a task: its attempts that have ended, and the journals of all its attempts, in order.
    async fn history(&self, key: &TaskKey) -> Result<TaskHistory, StoreError>;

    /// Sets the progress of a task. Progress of an attempt with an outdated fence is ignored. A `report` or `park` of the
    /// task saves it in the same commit; otherwise it may be saved later.
    async fn progress(&self, key: &TaskKey, fence: u64, progress: Progress) -> Result<(), StoreError>;

    /// Watches a task. Call this before [`read`](Self::read): then no change between the two is missed.
    fn watch(&self, key: &TaskKey) -> Watch;

    /// Watches the queue. It wakes when a task of any owner on any node has entered the queue or got a timer.
    fn watch_queue(&self) -> Watch;

    /// The secret with this name. If there is none, stores `fresh` and returns it.
    async fn secret(&self, name: &str, fresh: [u8; 32]) -> Result<[u8; 32], StoreError>;

    /// Resolves with the reason when the store has stopped and can no longer be used.
    async fn stopped(&self) -> String;

    /// Whether the store accepts writes: the result of the last write. If that failed, the store tries another one, so
    /// that a store that has recovered is found healthy. A store in files also checks that they are still there.
    async fn check(&self) -> Result<(), StoreError> {
        self.now().await.map(|_| ())
    }

    /// Finishes the pending writes and releases the files or connections of the store. It can be opened again when this
    /// returns. All handles are closed: later writes fail with [`StoreError::Stopped`].
    async fn close(&self) {}
}

/// A task to create, with its arguments.
#[derive(Debug, Clone)]
pub struct NewTask {
    /// The parameters of the task.
    pub create: Create,
    /// The arguments of the request.
    pub input: Json,
    /// Lets the requestor repeat the creation. It is boxed because few creations have one and all of them pass through a queue.
    pub idempotency: Option<Box<IdempotencyKey>>,
}

/// The result of a creation.
#[derive(Debug, Clone)]
pub struct CreateResult {
    /// The current state of the task.
    pub task: Arc<Task>,
    /// Whether an earlier request had created it under the same idempotency key.
    pub existed: bool,
}

/// A committed task and its progress.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The task.
    pub task: Arc<Task>,
    /// The last progress of its current attempt.
    pub progress: Option<Arc<Progress>>,
}

/// The result of a committed event.
#[derive(Debug, Clone)]
pub struct CommitResult {
    /// The task after the event.
    pub task: Arc<Task>,
    /// What the engine must react to.
    pub effects: Vec<Effect>,
}

/// What a store keeps about the past of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskHistory {
    /// The attempts that ended while the task went on, in order.
    pub attempts: Vec<AttemptRecord>,
    /// The journal entries of all [epochs](Task::epoch), in the order of (epoch, position).
    pub entries: Vec<JournalEntry>,
}

/// A request of a node for queued tasks.
#[derive(Debug, Clone)]
pub struct ClaimRequest {
    /// The node that will run the tasks.
    pub node: NodeId,
    /// The tools that the node can run.
    pub tools: Vec<ToolClaim>,
}

/// The part of a claim that concerns one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolClaim {
    /// The tool and its version.
    pub tool: ToolRef,
    /// The maximum number of tasks.
    pub limit: usize,
    /// The maximum number of tasks of these owners, which may be 0.
    pub owner_limits: BTreeMap<Owner, usize>,
}

impl ToolClaim {
    /// A claim of at most `limit` tasks, of whichever owners.
    pub fn new(tool: ToolRef, limit: usize) -> Self {
        Self { tool, limit, owner_limits: BTreeMap::new() }
    }
}

/// A claimed task with its arguments.
#[derive(Debug, Clone)]
pub struct ClaimedTask {
    /// The task, with the fence of the new attempt.
    pub task: Arc<Task>,
    /// The arguments of the request.
    pub input: Json,
}

/// The tasks to list.
#[derive(Debug, Clone)]
pub struct ListQuery {
    /// `None` lists the tasks of all owners.
    pub owner: Option<Owner>,
    /// The list starts after this task, which need not exist any more.
    pub after: Option<TaskKey>,
    /// The maximum number of tasks.
    pub limit: usize,
}

/// One page of tasks.
#[derive(Debug, Clone)]
pub struct TaskPage {
    /// The tasks in the order of the list.
    pub tasks: Vec<Snapshot>,
    /// Whether the list continues after the last of them.
    pub has_more: bool,
}

/// The tasks that are due.
#[derive(Debug, Clone)]
pub struct DueTasks {
    /// The store's time of the read.
    pub now: Timestamp,
    /// The committed state of the tasks that are due, ordered by the time at which they became due.
    pub tasks: Vec<Arc<Task>>,
    /// The time at which the first of the other tasks is due. It is in the past if the limit cut the list.
    pub next: Option<Timestamp>,
}

/// An attempt that a node holds, or held when it died.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldAttempt {
    /// The key of the task.
    pub key: TaskKey,
    /// The node of the attempt.
    pub node: NodeId,
    /// The fence of the attempt.
    pub fence: u64,
}

/// The number of open tasks of one owner, tool and phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskCount {
    /// The owner of the tasks.
    pub owner: Owner,
    /// The tool of the tasks.
    pub tool: ToolRef,
    /// The phase of the tasks.
    pub phase: PhaseName,
    /// The number of tasks.
    pub tasks: u64,
    /// The number of them that wait for a worker. A task with open questions can be among them.
    pub queued: u64,
}
