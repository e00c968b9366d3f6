//! What an embedded backend provides: transactions for the one writer, and reads for all handles.

use longhaul_task::{
    AttemptRecord, ChildRange, JournalEntry, Json, Owner, Progress, QuestionKey, Task, TaskId, TaskKey, Timestamp,
    ToolRef,
};

use crate::{
    HeldAttempt, IdempotencyKey, KeyedTask, ListQuery, Snapshot, StoreError, TaskCount, TaskHistory, TaskPage,
};

/// The disk of the writer, used by one thread.
pub trait Disk: Send + 'static {
    /// Opens a transaction.
    fn begin(&mut self) -> Result<Box<dyn Transaction + '_>, DiskError>;
    /// Checks that what was committed is where the next process looks for it: that no file was removed, moved or replaced
    /// since the disk was opened. The writer calls it after each commit, before anything is acknowledged, and at least once
    /// a second. Every error must be [`DiskError::Untrusted`].
    fn verify(&mut self) -> Result<(), DiskError> {
        Ok(())
    }
    /// The name of the store in the log.
    fn name(&self) -> String {
        "memory:".into()
    }
    /// Prepares the files for the next process. It is the last call of the writer, after all [`Reader`]s were closed.
    fn close(&mut self) {}
}

/// The open transaction of the writer. Its reads see its own writes. Dropping it without [`commit`](Transaction::commit) discards
/// its writes.
pub trait Transaction {
    /// Makes all writes durable and visible to every [`Reader`]. When this returns `Ok`, they are on stable storage; until then no
    /// reader sees any of them. After [`DiskError::Untrusted`] it is unknown whether they are durable. After any other error they
    /// are discarded.
    fn commit(self: Box<Self>) -> Result<(), DiskError>;

    fn task(&mut self, key: &TaskKey) -> Result<Option<Task>, DiskError>;
    /// The arguments of the task.
    fn input(&mut self, key: &TaskKey) -> Result<Option<Json>, DiskError>;
    /// Whether a child in this range is open. The child with the ordinal `except` does not count.
    fn has_open_child(&mut self, key: &TaskKey, range: ChildRange, except: Option<u32>) -> Result<bool, DiskError>;
    fn open_descendants(&mut self, key: &TaskKey) -> Result<Vec<Task>, DiskError>;
    /// The first queued tasks of an owner and a tool, each with its earliest time, ordered by that, the time of creation
    /// and the ID.
    fn queued(&mut self, tool: &ToolRef, owner: &Owner, limit: usize) -> Result<Vec<(Timestamp, TaskId)>, DiskError>;
    /// The owners that have queued tasks of a tool, each with the earliest time of these.
    fn queued_owners(&mut self, tool: &ToolRef) -> Result<Vec<(Owner, Timestamp)>, DiskError>;

    /// The task that an owner has created under an idempotency key.
    fn keyed_task(&mut self, owner: &Owner, key: &str) -> Result<Option<KeyedTask>, DiskError>;

    /// Writes a new task. Returns false, and writes nothing, if the key exists.
    fn insert(&mut self, task: &Task, input: &Json) -> Result<bool, DiskError>;
    /// Writes the idempotency key of a new task. The caller has checked that the key is not in use.
    fn insert_key(&mut self, task: &TaskKey, key: &IdempotencyKey) -> Result<(), DiskError>;
    /// Replaces the task `before`. A new attempt starts without progress.
    fn update(&mut self, before: &Task, after: &Task) -> Result<(), DiskError>;
    /// Deletes a family and its idempotency key. Returns the task keys of its members.
    fn delete_family(&mut self, root: &TaskKey) -> Result<Vec<TaskKey>, DiskError>;
    /// Writes a journal entry and returns `None`. If there is an entry at this position, returns that one and writes nothing.
    fn insert_entry(
        &mut self,
        key: &TaskKey,
        epoch: u32,
        entry: &JournalEntry,
    ) -> Result<Option<JournalEntry>, DiskError>;
    /// Replaces the journal entry at the position of this one.
    fn replace_entry(&mut self, key: &TaskKey, epoch: u32, entry: &JournalEntry) -> Result<(), DiskError>;
    /// The journal entry of a question, and the epoch of the entry.
    fn question(&mut self, key: &TaskKey, question: &QuestionKey) -> Result<Option<(u32, JournalEntry)>, DiskError>;
    /// When an attempt has last written a journal entry. `None` if it has written none.
    fn last_entry_of(&mut self, key: &TaskKey, epoch: u32, attempt: u32) -> Result<Option<Timestamp>, DiskError>;
    /// Writes how an attempt ended.
    fn insert_attempt(&mut self, key: &TaskKey, attempt: &AttemptRecord) -> Result<(), DiskError>;
    /// Writes the progress of an existing task.
    fn write_progress(&mut self, key: &TaskKey, progress: &Progress) -> Result<(), DiskError>;
    /// Writes a secret unless one of this name exists. Returns the stored one.
    fn secret(&mut self, name: &str, fresh: [u8; 32]) -> Result<[u8; 32], DiskError>;

    /// Writes and deletes a row in the same transaction, to find out whether there is room.
    fn check(&mut self) -> Result<(), DiskError> {
        Ok(())
    }
}

/// Reads committed data, from any thread.
pub trait Reader: Send + Sync + 'static {
    /// A task and its progress.
    fn read(&self, key: &TaskKey) -> Result<Option<Snapshot>, DiskError>;
    /// The task that an owner has created under an idempotency key.
    fn keyed_task(&self, owner: &Owner, key: &str) -> Result<Option<KeyedTask>, DiskError>;
    /// One page of tasks.
    fn list(&self, of: &ListQuery) -> Result<TaskPage, DiskError>;
    /// A task's children in order.
    fn children(&self, key: &TaskKey) -> Result<Vec<TaskId>, DiskError>;
    /// The first child that has an open question.
    fn asking_child(&self, key: &TaskKey) -> Result<Option<TaskId>, DiskError>;
    /// The journal entries of an epoch in order.
    fn journal(&self, key: &TaskKey, epoch: u32) -> Result<Vec<JournalEntry>, DiskError>;
    /// The journal entry of a question.
    fn question(&self, key: &TaskKey, question: &QuestionKey) -> Result<Option<JournalEntry>, DiskError>;
    /// The attempts that have ended, and the journal entries of all epochs, in order.
    fn history(&self, key: &TaskKey) -> Result<TaskHistory, DiskError>;
    /// Tasks that are due at `now`, longest due first, and the time when the next one is due.
    fn due(&self, now: Timestamp, limit: usize) -> Result<(Vec<TaskKey>, Option<Timestamp>), DiskError>;
    /// Open tasks whose wait or attempt began after `now`, in any order.
    fn began_after(&self, now: Timestamp, limit: usize) -> Result<Vec<TaskKey>, DiskError>;
    /// The tools that have queued tasks, each with the moment when the first of them may be claimed.
    fn queued_tools(&self) -> Result<Vec<(ToolRef, Timestamp)>, DiskError>;
    /// Attempts that nodes hold, after this key, in the order of the keys.
    fn held(&self, after: Option<&TaskKey>, limit: usize) -> Result<Vec<HeldAttempt>, DiskError>;
    /// Open tasks by owner, tool and phase.
    fn count_open_tasks(&self) -> Result<Vec<TaskCount>, DiskError>;

    /// Closes the connections. Later reads are refused.
    fn close(&self) {}
}

/// Why the disk failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DiskError {
    /// There is no room.
    #[error("{0}")]
    Full(String),
    /// The operation failed. Earlier commits are not affected.
    #[error("{0}")]
    Failed(String),
    /// A row has values that this program does not write. Only requests that need this row fail.
    #[error("{0}")]
    Unreadable(String),
    /// It is unknown whether the write is on the disk, and no later write is safe. The store must stop.
    #[error("{0}")]
    Untrusted(String),
}

impl From<DiskError> for StoreError {
    fn from(error: DiskError) -> Self {
        match error {
            DiskError::Full(cause) => Self::Full(cause),
            DiskError::Failed(cause) => Self::Unavailable(cause),
            DiskError::Unreadable(cause) => Self::Damaged(cause),
            DiskError::Untrusted(cause) => Self::Stopped(cause),
        }
    }
}
