//! The one writer: evaluates requests against its working state and commits whatever is waiting in one transaction.
//!
//! It has no thread, no channel and no clock: a [`WriterLoop`](super::WriterLoop) calls it.

use std::collections::BTreeMap;
use std::sync::Arc;

use foldhash::HashMap;
use longhaul_task::transition::{self, Claim, entry_conflict};
use longhaul_task::{
    Change, DescendantScope, Event, JournalEntry, JournalWrite, Json, Progress, Scope, Surroundings, Task, TaskKey,
    Timestamp, TransitionError,
};

use super::disk::{Disk, DiskError};
use super::task_cache::TaskCache;
use crate::{ClaimRequest, ClaimedTask, CommitResult, NewTask, StoreError, Watchers};

/// A request to the writer.
#[derive(Debug, Clone)]
pub enum WriteRequest {
    /// [`Store::create`](crate::Store::create)
    Create(NewTask),
    /// [`Store::apply`](crate::Store::apply)
    Apply(TaskKey, Event),
    /// [`Store::claim`](crate::Store::claim)
    Claim(ClaimRequest),
    /// [`Store::record`](crate::Store::record)
    Record(TaskKey, u64, JournalEntry),
    /// [`Store::secret`](crate::Store::secret)
    Secret(String, [u8; 32]),
    /// [`Store::check`](crate::Store::check)
    Check,
}

impl WriteRequest {
    /// The name in the log.
    pub(super) fn operation(&self) -> &'static str {
        match self {
            Self::Create(_) => "create",
            Self::Apply(_, event) => event.name(),
            Self::Claim(_) => "claim",
            Self::Record(..) => "record",
            Self::Secret(..) => "secret",
            Self::Check => "check",
        }
    }
}

/// The writer's answer to a request of the same kind.
#[derive(Debug, Clone)]
pub(super) enum WriteResponse {
    Applied(CommitResult),
    Claimed(Vec<ClaimedTask>),
    Recorded(JournalEntry),
    Secret([u8; 32]),
    Checked,
}

/// Progress that is in the cache and not on the disk yet, with the number of its attempt.
pub(super) type UnsavedProgress = BTreeMap<TaskKey, (u32, Arc<Progress>)>;

/// The writer and what it publishes to.
pub(super) struct Writer<D> {
    disk: D,
    cache: Arc<TaskCache>,
    watchers: Arc<Watchers>,
    /// Tasks that the open batch has changed. Readers must not see them before the commit.
    working: HashMap<TaskKey, Arc<Task>>,
    /// The changes of the open batch, in order. They go to the cache after the commit.
    publications: Vec<Publication>,
    stopped: Option<String>,
    failed: Option<StoreError>,
}

enum Publication {
    Task(Arc<Task>),
    Deleted(Vec<TaskKey>),
}

impl<D: Disk> Writer<D> {
    pub(super) fn new(disk: D, cache: Arc<TaskCache>, watchers: Arc<Watchers>) -> Self {
        Self {
            disk,
            cache,
            watchers,
            working: HashMap::default(),
            publications: Vec::new(),
            stopped: None,
            failed: None,
        }
    }

    /// Why the store has stopped, if it has.
    pub(super) fn stopped(&self) -> Option<&str> {
        self.stopped.as_deref()
    }

    /// Why the last batch was not written, if it failed.
    pub(super) fn failed(&self) -> Option<&StoreError> {
        self.failed.as_ref()
    }

    /// Closes the disk.
    pub(super) fn close(mut self) {
        // After a failed sync the files are left alone: the next process recovers from them.
        if self.stopped.is_none() {
            self.disk.close();
        }
    }

    /// Carries out a batch: one transaction, one commit. The answers are in the order of the requests, and may be
    /// sent, because what they say is durable and visible. A refusal fails only its own request; a failed commit
    /// fails all. Progress is written in the same transaction.
    pub(super) fn batch(
        &mut self,
        requests: Vec<WriteRequest>,
        progress: &UnsavedProgress,
        now: Timestamp,
    ) -> Vec<Result<WriteResponse, StoreError>> {
        let count = requests.len();
        if let Some(reason) = &self.stopped {
            return vec![Err(StoreError::Stopped(reason.clone())); count];
        }
        match self.try_batch(requests, progress, now) {
            Ok(responses) => {
                self.publish();
                self.failed = None;
                responses
            }
            Err(error) => {
                self.disk.rollback();
                self.working.clear();
                self.publications.clear();
                if let DiskError::Untrusted(reason) = &error {
                    self.stopped = Some(reason.clone());
                }
                let error = StoreError::from(error);
                self.failed = Some(error.clone());
                vec![Err(error); count]
            }
        }
    }

    fn try_batch(
        &mut self,
        requests: Vec<WriteRequest>,
        progress: &UnsavedProgress,
        now: Timestamp,
    ) -> Result<Vec<Result<WriteResponse, StoreError>>, DiskError> {
        self.disk.begin()?;
        let mut responses = Vec::with_capacity(requests.len());
        for request in requests {
            match self.evaluate(request, now) {
                Ok(response) => responses.push(Ok(response)),
                Err(RequestFailure::Answer(refusal)) => responses.push(Err(refusal)),
                Err(RequestFailure::Disk(error)) => return Err(error),
            }
        }
        for (key, (attempt, progress)) in progress {
            // The task may have been deleted, or have a newer attempt.
            if self.load(key)?.is_some_and(|task| task.attempt == *attempt) {
                self.disk.write_progress(key, progress)?;
            }
        }
        self.disk.commit()?;
        Ok(responses)
    }

    fn publish(&mut self) {
        let mut queue_changed = false;
        for publication in self.publications.drain(..) {
            match publication {
                Publication::Task(task) => {
                    queue_changed |= task.phase.not_before().is_some() || task.phase.wake_condition().is_some();
                    self.cache.show(&task);
                    self.watchers.changed(&task.key);
                }
                Publication::Deleted(keys) => {
                    self.cache.forget(&keys);
                    for key in &keys {
                        self.watchers.changed(key);
                    }
                }
            }
        }
        self.working.clear();
        if queue_changed {
            self.watchers.queue_changed();
        }
    }

    fn evaluate(&mut self, request: WriteRequest, now: Timestamp) -> Result<WriteResponse, RequestFailure> {
        match request {
            WriteRequest::Create(new) => self.create(&new, now).map(WriteResponse::Applied),
            WriteRequest::Apply(key, event) => self.apply(&key, &event, now).map(WriteResponse::Applied),
            WriteRequest::Claim(claim) => self.claim(&claim, now).map(WriteResponse::Claimed),
            WriteRequest::Record(key, fence, record) => self.record(&key, fence, record).map(WriteResponse::Recorded),
            WriteRequest::Secret(name, fresh) => Ok(WriteResponse::Secret(self.disk.secret(&name, fresh)?)),
            WriteRequest::Check => {
                self.disk.check()?;
                Ok(WriteResponse::Checked)
            }
        }
    }

    fn create(&mut self, new: &NewTask, now: Timestamp) -> Result<CommitResult, RequestFailure> {
        let task = transition::create(&new.create, now);
        self.insert(task, &new.input).map(|task| CommitResult { task, effects: Vec::new() })
    }

    fn insert(&mut self, task: Task, input: &Json) -> Result<Arc<Task>, RequestFailure> {
        // The disk detects a duplicate key. A read before each creation would cost a tenth of its time.
        if self.disk.insert(&task, input)? { Ok(self.keep(task)) } else { Err(TransitionError::DuplicateId.into()) }
    }

    fn apply(&mut self, key: &TaskKey, event: &Event, now: Timestamp) -> Result<CommitResult, RequestFailure> {
        let task = self.load(key)?.ok_or(StoreError::NotFound)?;
        let surroundings = self.surroundings(&task, event.scope(&task))?;
        let change = transition::apply(&task, event, &surroundings, now).map_err(StoreError::from)?;
        if let Some((child, _)) = &change.child
            && self.load(&child.key)?.is_some()
        {
            return Err(TransitionError::DuplicateId.into());
        }
        self.write(&task, change, &surroundings)
    }

    fn surroundings(&mut self, task: &Task, scope: Scope) -> Result<Surroundings, DiskError> {
        let mut surroundings = Surroundings::default();
        match scope.descendants {
            DescendantScope::Nothing => {}
            DescendantScope::OpenChildren => surroundings.open_children = self.disk.open_children(&task.key)?,
            DescendantScope::OpenDescendants => {
                surroundings.open_descendants = self.disk.open_descendants(&task.key)?;
            }
        }
        if let Some(parent) = task.family.parent.as_ref().filter(|_| scope.parent) {
            let key = TaskKey { owner: task.key.owner.clone(), id: parent.clone() };
            surroundings.parent = self.load(&key)?.map(Arc::unwrap_or_clone);
        }
        Ok(surroundings)
    }

    fn write(
        &mut self,
        before: &Task,
        change: Change,
        surroundings: &Surroundings,
    ) -> Result<CommitResult, RequestFailure> {
        if change.deletes_family() {
            let keys = self.disk.delete_family(&before.key)?;
            for key in &keys {
                self.working.remove(key);
            }
            self.publications.push(Publication::Deleted(keys));
            return Ok(CommitResult { task: Arc::new(change.task), effects: change.effects });
        }
        match &change.journal_write {
            // Before all other writes, because a question that was asked before is refused.
            Some(JournalWrite::Asked { key, record }) => {
                if let Some(entry) = self.disk.insert_record(&before.key, before.epoch(), record, Some(key))? {
                    return Err(entry_conflict(&entry.record, entry.question.as_ref(), record).into());
                }
            }
            Some(JournalWrite::Answered { key, body }) => self.disk.answer_record(&before.key, key, body)?,
            None => {}
        }
        self.disk.update(before, &change.task)?;
        if let Some((child, input)) = change.child {
            self.insert(child, &input)?;
        }
        for relative in change.relatives {
            let mut loaded = surroundings.open_descendants.iter().chain(&surroundings.parent);
            if let Some(before) = loaded.find(|task| task.key == relative.key) {
                self.disk.update(before, &relative)?;
                self.keep(relative);
            }
        }
        Ok(CommitResult { task: self.keep(change.task), effects: change.effects })
    }

    fn claim(&mut self, claim: &ClaimRequest, now: Timestamp) -> Result<Vec<ClaimedTask>, RequestFailure> {
        let mut claimed = Vec::new();
        for (tool, limit) in &claim.tools {
            for key in self.disk.queued(tool, now, *limit)? {
                let event = Event::Claim(Claim { node: claim.node });
                match self.apply(&key, &event, now) {
                    Ok(CommitResult { task, .. }) => {
                        let input = self.disk.input(&key)?.ok_or(StoreError::NotFound)?;
                        claimed.push(ClaimedTask { task, input });
                    }
                    // The clock was set back since the task was queued, so it may not be claimed yet.
                    Err(RequestFailure::Answer(_)) => {}
                    Err(failed) => return Err(failed),
                }
            }
        }
        Ok(claimed)
    }

    fn record(&mut self, key: &TaskKey, fence: u64, record: JournalEntry) -> Result<JournalEntry, RequestFailure> {
        let task = self.load(key)?.ok_or(StoreError::NotFound)?;
        task.check_fence(fence)?;
        let entry = self.disk.insert_record(key, task.epoch(), &record, None)?;
        Ok(entry.map_or(record, |entry| entry.record))
    }

    /// The task as this batch sees it.
    fn load(&mut self, key: &TaskKey) -> Result<Option<Arc<Task>>, DiskError> {
        if let Some(task) = self.working.get(key) {
            return Ok(Some(Arc::clone(task)));
        }
        if self.gone_in_this_batch(key) {
            return Ok(None);
        }
        if let Some(snapshot) = self.cache.get(key) {
            return Ok(Some(snapshot.task));
        }
        Ok(self.disk.task(key)?.map(Arc::new))
    }

    fn gone_in_this_batch(&self, key: &TaskKey) -> bool {
        self.publications
            .iter()
            .any(|publication| matches!(publication, Publication::Deleted(keys) if keys.contains(key)))
    }

    fn keep(&mut self, task: Task) -> Arc<Task> {
        let task = Arc::new(task);
        self.working.insert(task.key.clone(), Arc::clone(&task));
        self.publications.push(Publication::Task(Arc::clone(&task)));
        task
    }
}

/// An error of one request, or an error of the disk, which fails the whole batch.
enum RequestFailure {
    Answer(StoreError),
    Disk(DiskError),
}

impl From<DiskError> for RequestFailure {
    fn from(error: DiskError) -> Self {
        Self::Disk(error)
    }
}

impl From<StoreError> for RequestFailure {
    fn from(error: StoreError) -> Self {
        Self::Answer(error)
    }
}

impl From<TransitionError> for RequestFailure {
    fn from(refused: TransitionError) -> Self {
        Self::Answer(refused.into())
    }
}
