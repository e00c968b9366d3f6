//! The trait that the engine runs on.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use longhaul_task::transition::Create;
use longhaul_task::{
    Effect, Event, Json, NodeId, Owner, PhaseName, Progress, Record, Task, TaskId, TaskKey, Timestamp, ToolRef,
};

use crate::{StoreError, Watch};

/// Where tasks live. Everything that returns `Ok` is on stable storage; everything that is read was committed.
///
/// Backends contain no rules: they load what an event's [`scope`](Event::scope) names, call
/// [`longhaul_task::transition::apply`], and write the change if everything that was loaded for it still stands.
#[async_trait]
pub trait Store: Send + Sync + fmt::Debug + 'static {
    /// The time by this store's clock.
    async fn now(&self) -> Result<Timestamp, StoreError>;

    /// Makes a task.
    async fn create(&self, new: NewTask) -> Result<Applied, StoreError>;

    /// The task as it was last committed. A read changes nothing.
    async fn read(&self, key: &TaskKey) -> Result<Snapshot, StoreError>;

    /// Lets something happen to a task.
    async fn apply(&self, key: &TaskKey, event: Event) -> Result<Applied, StoreError>;

    /// Gives queued tasks to a node, tool by tool, oldest first, each to one node only.
    async fn claim(&self, claim: ClaimNext) -> Result<Vec<Claimed>, StoreError>;

    /// One page of an owner's tasks, newest first (an ID begins with its time); of everybody's for the operator, owner
    /// by owner.
    async fn list(&self, of: &Listing) -> Result<TaskPage, StoreError>;

    /// A task's children, in the order they were made.
    async fn children(&self, key: &TaskKey) -> Result<Vec<TaskId>, StoreError>;

    /// What waits for nothing but time: the tasks that are due now, and when the next one will be.
    async fn due(&self, limit: usize) -> Result<Due, StoreError>;

    /// When the earliest queued task of these tools may be claimed; `None` when none is queued.
    async fn next_queued(&self, tools: &[ToolRef]) -> Result<Option<Timestamp>, StoreError>;

    /// How many open tasks there are, by owner, tool and phase: what limits are counted from after a restart.
    async fn census(&self) -> Result<Vec<Count>, StoreError>;

    /// Whether other processes can use this store at the same time.
    fn is_shared(&self) -> bool;

    /// Announces a node and the tools it serves, or renews its lease. Without a lease the node lives as long as this
    /// process; a shared store cannot know that, and refuses it. A lease that is over stays over
    /// ([`StoreError::Lapsed`]): others may have what the node held.
    async fn join(&self, node: NodeId, lease_ms: Option<u64>, serves: &[ToolRef]) -> Result<(), StoreError>;

    /// Tools of queued tasks that no living node serves.
    async fn unserved(&self) -> Result<Vec<ToolRef>, StoreError>;

    /// Attempts of nodes that are dead.
    async fn orphans(&self, limit: usize) -> Result<Vec<Orphan>, StoreError>;

    /// Attempts that this node holds, in the order of their keys: after a claim in doubt, it may not know all of them.
    async fn held(&self, node: NodeId, after: Option<&TaskKey>, limit: usize) -> Result<Vec<Orphan>, StoreError>;

    /// Records what an attempt did, once, and says what stands there: a place that is taken keeps what it has. The fence
    /// holds until the record is written.
    async fn record(&self, key: &TaskKey, fence: u64, record: Record) -> Result<Record, StoreError>;

    /// What was recorded on a task's shelf, in order.
    async fn records(&self, key: &TaskKey, epoch: u32) -> Result<Vec<Record>, StoreError>;

    /// Puts word of an attempt's progress into the task's side slot. Word of an attempt that lost the task is dropped.
    async fn progress(&self, key: &TaskKey, fence: u64, progress: Progress) -> Result<(), StoreError>;

    /// Follows one task. Subscribe first, then read: nothing falls between.
    fn watch(&self, key: &TaskKey) -> Watch;

    /// Follows the queue: wakes when a task, of anybody on any node, has entered it or has been given a time to wake.
    fn watch_queue(&self) -> Watch;

    /// The secret of that name: the one that is stored, or `fresh`, which then is.
    async fn secret(&self, name: &str, fresh: [u8; 32]) -> Result<[u8; 32], StoreError>;

    /// Resolves when the store can promise nothing any more, with the reason.
    async fn stopped(&self) -> String;

    /// Whether it takes writes: what the last one met. After a failure it tries one, so that it notices when it is well
    /// again.
    async fn check(&self) -> Result<(), StoreError> {
        self.now().await.map(|_| ())
    }

    /// Carries out what has been asked, lets go of whatever it lives on, and returns when that can be opened again.
    /// Every handle is closed with it: later calls are refused.
    async fn close(&self) {}
}

/// A task to be made, with its arguments.
#[derive(Debug, Clone)]
pub struct NewTask {
    /// The task.
    pub create: Create,
    /// The request's arguments.
    pub input: Json,
}

/// A task as committed, and how far it says it is.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The task.
    pub task: Arc<Task>,
    /// Its side slot.
    pub progress: Option<Arc<Progress>>,
}

/// What a committed event did.
#[derive(Debug, Clone)]
pub struct Applied {
    /// The task after it.
    pub task: Arc<Task>,
    /// What follows from it.
    pub effects: Vec<Effect>,
}

/// A request for work.
#[derive(Debug, Clone)]
pub struct ClaimNext {
    /// Who asks.
    pub node: NodeId,
    /// The tools it can run, and how many tasks of each it takes at most.
    pub wants: Vec<(ToolRef, usize)>,
}

/// A task that a node has got, with its arguments.
#[derive(Debug, Clone)]
pub struct Claimed {
    /// The task, running under its new fence.
    pub task: Arc<Task>,
    /// The request's arguments.
    pub input: Json,
}

/// Which tasks to list.
#[derive(Debug, Clone)]
pub struct Listing {
    /// Whose; everybody's when nobody is named.
    pub owner: Option<Owner>,
    /// Past this one.
    pub after: Option<TaskKey>,
    /// How many at most.
    pub limit: usize,
}

/// One page of tasks.
#[derive(Debug, Clone)]
pub struct TaskPage {
    /// The tasks.
    pub tasks: Vec<Snapshot>,
    /// Whether there are more past the last of them.
    pub more: bool,
}

/// What is due.
#[derive(Debug, Clone)]
pub struct Due {
    /// The store's time when it looked.
    pub now: Timestamp,
    /// The tasks that are due, longest due first, as they stand.
    pub tasks: Vec<Arc<Task>>,
    /// When the first of the others will be.
    pub next: Option<Timestamp>,
}

/// An attempt that a node holds, or held when it died.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orphan {
    /// The task.
    pub key: TaskKey,
    /// The node.
    pub node: NodeId,
    /// The attempt's fence.
    pub fence: u64,
}

/// A number of open tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Count {
    /// Whose.
    pub owner: Owner,
    /// Of which tool.
    pub tool: ToolRef,
    /// In which phase.
    pub phase: PhaseName,
    /// How many.
    pub tasks: u64,
    /// How many of them wait for a worker; some do so with questions open.
    pub queued: u64,
}
