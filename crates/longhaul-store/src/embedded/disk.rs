//! What an embedded backend provides: transactions for the one writer, and reads for all handles.

use longhaul_task::{JournalEntry, Json, Progress, QuestionKey, Task, TaskId, TaskKey, Timestamp, ToolRef};

use crate::{HeldAttempt, ListQuery, Snapshot, StoreError, TaskCount, TaskPage};

/// The writer's side. One thread has it; reads see what the open transaction has written.
///
/// Between [`begin`](Disk::begin) and [`commit`](Disk::commit) nothing is visible to a [`Reader`]; after a commit
/// returned `Ok`, everything is, and it is on stable storage.
pub trait Disk: Send + 'static {
    /// Opens a transaction.
    fn begin(&mut self) -> Result<(), DiskError>;
    /// Makes everything since `begin` durable.
    fn commit(&mut self) -> Result<(), DiskError>;
    /// Forgets everything since `begin`.
    fn rollback(&mut self);

    /// The task of that key.
    fn task(&mut self, key: &TaskKey) -> Result<Option<Task>, DiskError>;
    /// Its arguments.
    fn input(&mut self, key: &TaskKey) -> Result<Option<Json>, DiskError>;
    /// How many of its children are open.
    fn open_children(&mut self, key: &TaskKey) -> Result<u32, DiskError>;
    /// The open tasks below it.
    fn open_descendants(&mut self, key: &TaskKey) -> Result<Vec<Task>, DiskError>;
    /// Queued tasks of a tool that may be claimed, longest waiting first.
    fn queued(&mut self, tool: &ToolRef, now: Timestamp, limit: usize) -> Result<Vec<TaskKey>, DiskError>;

    /// Writes a new task, unless there is one of that key; says whether it did.
    fn insert(&mut self, task: &Task, input: &Json) -> Result<bool, DiskError>;
    /// Writes a changed task; `before` is what stands there. A new attempt starts without progress.
    fn update(&mut self, before: &Task, after: &Task) -> Result<(), DiskError>;
    /// Deletes a family and says who was in it.
    fn delete_family(&mut self, root: &TaskKey) -> Result<Vec<TaskKey>, DiskError>;
    /// Writes a record, the question's key with it when it is one, and says `None`; or says what stands there already,
    /// and writes nothing.
    fn insert_record(
        &mut self,
        key: &TaskKey,
        epoch: u32,
        record: &JournalEntry,
        question: Option<&QuestionKey>,
    ) -> Result<Option<StoredEntry>, DiskError>;
    /// Completes the record of a question.
    fn answer_record(&mut self, key: &TaskKey, question: &QuestionKey, output: &Json) -> Result<(), DiskError>;
    /// Writes the side slot of a task that is there.
    fn write_progress(&mut self, key: &TaskKey, progress: &Progress) -> Result<(), DiskError>;
    /// Writes a secret, unless there is one, and says which one is there.
    fn secret(&mut self, name: &str, fresh: [u8; 32]) -> Result<[u8; 32], DiskError>;

    /// Writes something that is gone again with the commit, to see whether there is room.
    fn check(&mut self) -> Result<(), DiskError> {
        Ok(())
    }
    /// What an operator knows it by.
    fn name(&self) -> String {
        "memory:".into()
    }
    /// Leaves everything in order for the next process. It is not called again after that, and no [`Reader`]
    /// uses it any more.
    fn close(&mut self) {}
}

/// The handles' side: reads of what is committed.
pub trait Reader: Send + Sync + 'static {
    /// A task and its side slot.
    fn read(&self, key: &TaskKey) -> Result<Option<Snapshot>, DiskError>;
    /// One page of tasks.
    fn list(&self, of: &ListQuery) -> Result<TaskPage, DiskError>;
    /// A task's children in order.
    fn children(&self, key: &TaskKey) -> Result<Vec<TaskId>, DiskError>;
    /// The records of a shelf in order.
    fn records(&self, key: &TaskKey, epoch: u32) -> Result<Vec<JournalEntry>, DiskError>;
    /// Tasks that are due by `now`, longest due first, and when the first of the others will be.
    fn due(&self, now: Timestamp, limit: usize) -> Result<(Vec<TaskKey>, Option<Timestamp>), DiskError>;
    /// The tools that have queued tasks, each with the moment when the first of them may be claimed.
    fn queued_tools(&self) -> Result<Vec<(ToolRef, Timestamp)>, DiskError>;
    /// Attempts that some node holds in memory, past that key, in order of keys.
    fn held(&self, after: Option<&TaskKey>, limit: usize) -> Result<Vec<HeldAttempt>, DiskError>;
    /// Open tasks by owner, tool and phase.
    fn count_open_tasks(&self) -> Result<Vec<TaskCount>, DiskError>;

    /// Lets go of the disk. Later reads are refused.
    fn close(&self) {}
}

/// What stands at a place of the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEntry {
    /// The record.
    pub record: JournalEntry,
    /// The question that it waits for or waited for, if it is one.
    pub question: Option<QuestionKey>,
}

/// Why the disk did not do it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DiskError {
    /// There is no room.
    #[error("{0}")]
    Full(String),
    /// It did not work; what was committed before is untouched.
    #[error("{0}")]
    Failed(String),
    /// What was written may or may not be on the disk, and no later write can be trusted: stop.
    #[error("{0}")]
    Untrusted(String),
}

impl From<DiskError> for StoreError {
    fn from(error: DiskError) -> Self {
        match error {
            DiskError::Full(cause) => Self::Full(cause),
            DiskError::Failed(cause) => Self::Unavailable(cause),
            DiskError::Untrusted(cause) => Self::Stopped(cause),
        }
    }
}
