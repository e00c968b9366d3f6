//! The writer of an embedded store: evaluates a batch of requests in order and commits it in one transaction.
//!
//! It has no thread, no channel and no clock: a [`WriterLoop`](super::WriterLoop) hands it batches and the time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use foldhash::HashMap;
use longhaul_task::transition::{self, Claim};
use longhaul_task::{
    Change, ChildRange, DescendantScope, EntryConflict, Event, JournalEntry, JournalWrite, Json, NodeId, Owner,
    Progress, Scope, Surroundings, Task, TaskId, TaskKey, Timestamp, ToolRef, TransitionError,
};

use super::disk::{Disk, DiskError};
use super::task_cache::TaskCache;
use super::turns::Turns;
use crate::{ClaimRequest, ClaimedTask, CommitResult, CreateResult, NewTask, StoreError, ToolClaim, Watchers};

/// A request to the writer. Each variant is a call of the method that it links to.
#[derive(Debug, Clone)]
pub enum WriteRequest {
    /// [`Store::create`](crate::Store::create)
    Create(NewTask),
    /// [`Store::apply`](crate::Store::apply)
    Apply(TaskKey, Event),
    /// [`Store::claim`](crate::Store::claim)
    Claim(ClaimRequest),
    /// [`Store::record`](crate::Store::record)
    Record(TaskKey, u64, Vec<JournalEntry>),
    /// [`Store::secret`](crate::Store::secret)
    Secret(String, [u8; 32]),
    /// [`Store::check`](crate::Store::check) after a write that failed
    Check,
    /// [`Store::check`](crate::Store::check) otherwise: writes nothing, but the commit verifies the disk.
    Verify,
}

impl WriteRequest {
    /// Whether the progress so far must be in the same commit: a task that parks leaves the cache, and the message of the
    /// progress counts as newer than that of the task.
    pub(super) fn saves_progress(&self) -> bool {
        matches!(self, Self::Apply(_, Event::Park(_) | Event::Report(_)))
    }

    /// The name of the request in the log.
    pub(super) fn operation(&self) -> &'static str {
        match self {
            Self::Create(_) => "create",
            Self::Apply(_, event) => event.name(),
            Self::Claim(_) => "claim",
            Self::Record(..) => "record",
            Self::Secret(..) => "secret",
            Self::Check => "check",
            Self::Verify => "verify",
        }
    }
}

/// The writer's response to a request of the same kind.
#[derive(Debug, Clone)]
pub(super) enum WriteResponse {
    Created(CreateResult),
    Applied(CommitResult),
    Claimed(Vec<ClaimedTask>),
    Recorded,
    Secret([u8; 32]),
    Checked,
}

/// Progress that is published and not yet on the disk, with the number of the attempt that reported it.
pub(super) type UnsavedProgress = BTreeMap<TaskKey, (u32, Arc<Progress>)>;

pub(super) struct Writer<D> {
    disk: D,
    cache: Arc<TaskCache>,
    watchers: Arc<Watchers>,
    /// Tasks that the open batch has changed. Readers must not see them before the commit.
    working: HashMap<TaskKey, Arc<Task>>,
    /// Tasks that the open batch has deleted.
    deleted: BTreeSet<TaskKey>,
    /// The changes of the open batch, in order, to be published after the commit.
    publications: Vec<Publication>,
    turns: Turns,
    /// Queued tasks that cannot be read. Claims pass over them.
    damaged: BTreeSet<TaskKey>,
    /// Why the writer has stopped for good.
    stopped: Option<String>,
    /// Why the last batch was not written.
    last_failure: Option<StoreError>,
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
            deleted: BTreeSet::new(),
            publications: Vec::new(),
            turns: Turns::default(),
            damaged: BTreeSet::new(),
            stopped: None,
            last_failure: None,
        }
    }

    /// Why the writer has stopped for good; `None` while it accepts batches.
    pub(super) fn stopped(&self) -> Option<&str> {
        self.stopped.as_deref()
    }

    /// Why the last batch was not written; `None` if it was.
    pub(super) fn last_failure(&self) -> Option<&StoreError> {
        self.last_failure.as_ref()
    }

    /// Closes the disk. A writer that has stopped leaves it as it is: what is durable is unknown until the next process
    /// reads it.
    pub(super) fn close(mut self) {
        if self.stopped.is_none() {
            self.disk.close();
        }
    }

    /// Carries out a batch in one transaction with one commit. The responses are in the order of the requests. They may be
    /// sent when this returns, because the changes are durable and published. A refused event fails only its own request; a
    /// disk error fails all requests. `progress` is saved in the same transaction.
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
                self.last_failure = None;
                responses
            }
            Err(error) => {
                self.disk.rollback();
                self.working.clear();
                self.deleted.clear();
                self.publications.clear();
                self.turns.clear();
                vec![Err(self.fail(error)); count]
            }
        }
    }

    /// Stops for good if the files of the disk are no longer those that were opened.
    pub(super) fn verify(&mut self) {
        if self.stopped.is_none()
            && let Err(error) = self.disk.verify()
        {
            self.fail(error);
        }
    }

    fn fail(&mut self, error: DiskError) -> StoreError {
        if let DiskError::Untrusted(reason) = &error {
            self.stopped = Some(reason.clone());
        }
        let error = StoreError::from(error);
        self.last_failure = Some(error.clone());
        error
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
                Err(RequestFailure::Refused(refusal)) => responses.push(Err(refusal)),
                Err(RequestFailure::Disk(error)) => return Err(error),
            }
        }
        for (key, (attempt, progress)) in progress {
            // Since the report, the task may have been deleted or claimed by another attempt.
            if self.load(key)?.is_some_and(|task| task.attempt == *attempt) {
                self.disk.write_progress(key, progress)?;
            }
        }
        self.disk.commit()?;
        self.disk.verify()?;
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
        self.deleted.clear();
        if queue_changed {
            self.watchers.queue_changed();
        }
    }

    fn evaluate(&mut self, request: WriteRequest, now: Timestamp) -> Result<WriteResponse, RequestFailure> {
        match request {
            WriteRequest::Create(new) => self.create(&new, now).map(WriteResponse::Created),
            WriteRequest::Apply(key, event) => self.apply(&key, &event, now).map(WriteResponse::Applied),
            WriteRequest::Claim(claim) => self.claim(&claim, now).map(WriteResponse::Claimed),
            WriteRequest::Record(key, fence, entries) => {
                self.record(&key, fence, entries, now).map(|()| WriteResponse::Recorded)
            }
            WriteRequest::Secret(name, fresh) => Ok(WriteResponse::Secret(self.disk.secret(&name, fresh)?)),
            WriteRequest::Verify => Ok(WriteResponse::Checked),
            WriteRequest::Check => {
                self.disk.check()?;
                Ok(WriteResponse::Checked)
            }
        }
    }

    fn create(&mut self, new: &NewTask, now: Timestamp) -> Result<CreateResult, RequestFailure> {
        let key = &new.create.key;
        if let Some(request) = &new.idempotency
            && let Some(keyed) = self.disk.keyed_task(&key.owner, &request.key)?
        {
            let key = TaskKey { owner: key.owner.clone(), id: keyed.of_request(request)? };
            let task = self.load(&key)?.ok_or(StoreError::NotFound)?;
            return Ok(CreateResult { task, existed: true });
        }
        let task = self.insert(transition::create(&new.create, now), &new.input)?;
        if let Some(request) = &new.idempotency {
            self.disk.insert_key(key, request)?;
        }
        Ok(CreateResult { task, existed: false })
    }

    fn insert(&mut self, task: Task, input: &Json) -> Result<Arc<Task>, RequestFailure> {
        // The disk detects a duplicate ID. A separate query before each creation would make it a tenth slower.
        if self.disk.insert(&task, input)? { Ok(self.stage(task)) } else { Err(TransitionError::DuplicateId.into()) }
    }

    fn apply(&mut self, key: &TaskKey, event: &Event, now: Timestamp) -> Result<CommitResult, RequestFailure> {
        let task = self.load(key)?.ok_or(StoreError::NotFound)?;
        let surroundings = self.surroundings(&task, event.scope(&task))?;
        let change = transition::apply(&task, event, &surroundings, now).map_err(StoreError::from)?;
        for (child, _) in &change.children {
            if self.load(&child.key)?.is_some() {
                return Err(TransitionError::DuplicateId.into());
            }
        }
        self.write(&task, change, &surroundings)
    }

    fn surroundings(&mut self, task: &Task, scope: Scope) -> Result<Surroundings, DiskError> {
        let mut surroundings = Surroundings::default();
        match scope.descendants {
            DescendantScope::Nothing => {}
            DescendantScope::OpenChildren(ranges) => {
                surroundings.open_children = self.open_ranges(&task.key, &ranges, None)?;
            }
            DescendantScope::OpenDescendants => {
                surroundings.open_descendants = self.disk.open_descendants(&task.key)?;
            }
        }
        if let Some(parent) = task.family.parent.as_ref().filter(|_| scope.parent) {
            let key = TaskKey { owner: task.key.owner.clone(), id: parent.clone() };
            if let Some(parent) = self.load(&key)? {
                surroundings.open_siblings =
                    self.open_ranges(&key, parent.awaited_children(), Some(task.family.ordinal))?;
                surroundings.parent = Some(Arc::unwrap_or_clone(parent));
            }
        }
        if scope.attempt_entries {
            surroundings.attempt_wrote_at = self.disk.last_entry_of(&task.key, task.epoch(), task.attempt)?;
        }
        Ok(surroundings)
    }

    /// The ranges that have an open child. The child with the ordinal `except` does not count, and ranges without that child
    /// are left out, because its end does not affect them.
    fn open_ranges(
        &mut self,
        key: &TaskKey,
        ranges: &[ChildRange],
        except: Option<u32>,
    ) -> Result<Vec<ChildRange>, DiskError> {
        let mut open = Vec::new();
        for range in ranges.iter().filter(|range| except.is_none_or(|ordinal| range.contains(ordinal))) {
            if self.disk.has_open_child(key, *range, except)? {
                open.push(*range);
            }
        }
        Ok(open)
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
                self.deleted.insert(key.clone());
            }
            self.publications.push(Publication::Deleted(keys));
            return Ok(CommitResult { task: Arc::new(change.task), effects: change.effects });
        }
        // The journal is written before anything else: if a position is taken by another operation, the event is refused.
        for write in &change.journal {
            self.write_journal(before, write)?;
        }
        if let Some(attempt) = &change.ended_attempt {
            self.disk.insert_attempt(&before.key, attempt)?;
        }
        self.disk.update(before, &change.task)?;
        for (child, input) in change.children {
            self.insert(child, &input)?;
        }
        for relative in change.relatives {
            let mut loaded = surroundings.open_descendants.iter().chain(&surroundings.parent);
            if let Some(before) = loaded.find(|task| task.key == relative.key) {
                self.disk.update(before, &relative)?;
                self.stage(relative);
            }
        }
        Ok(CommitResult { task: self.stage(change.task), effects: change.effects })
    }

    fn claim(&mut self, claim: &ClaimRequest, now: Timestamp) -> Result<Vec<ClaimedTask>, RequestFailure> {
        let mut claimed = Vec::new();
        for tool_claim in &claim.tools {
            self.claim_in_turn(claim.node, tool_claim, now, &mut claimed)?;
        }
        Ok(claimed)
    }

    /// Claims tasks of one tool, in rounds: in each, every owner gets the same number of tasks, as far as it has them.
    fn claim_in_turn(
        &mut self,
        node: NodeId,
        ToolClaim { tool, limit, owner_limits }: &ToolClaim,
        now: Timestamp,
        claimed: &mut Vec<ClaimedTask>,
    ) -> Result<(), RequestFailure> {
        if self.turns.of(tool).is_none() {
            let owners = self.disk.queued_owners(tool)?;
            self.turns.load(tool, owners);
        }
        let end = claimed.len().saturating_add(*limit);
        let mut owner_limits = owner_limits.clone();
        while let Some(turns) = self.turns.of(tool) {
            let left = end - claimed.len();
            let owners = turns.next(now, left, |owner| owner_limits.get(owner) != Some(&0));
            let Some(each) = left.checked_div(owners.len()) else { break };
            for owner in owners {
                let each = owner_limits.get(&owner).map_or(each, |limit| each.min(*limit));
                let queued = self.queued(tool, &owner, each.saturating_add(1))?;
                let ready = queued.iter().take(each).take_while(|(at, _)| *at <= now).count();
                if let Some(limit) = owner_limits.get_mut(&owner) {
                    *limit -= ready;
                }
                for (_, id) in &queued[..ready] {
                    let key = TaskKey { owner: owner.clone(), id: id.clone() };
                    match self.claim_task(&key, node, now) {
                        Ok(task) => claimed.push(task),
                        Err(RequestFailure::Refused(error @ StoreError::Damaged(_))) => {
                            tracing::error!(task = %key.id, %owner, %error, "a queued task is left as it is");
                            self.damaged.insert(key);
                        }
                        // The disk has it in the queue and the cache has not. Its owner gets no further turn in this claim.
                        Err(RequestFailure::Refused(_)) => drop(owner_limits.insert(owner.clone(), 0)),
                        Err(failed) => return Err(failed),
                    }
                }
                if let Some(turns) = self.turns.of(tool) {
                    turns.served(owner, queued.get(ready).map(|(at, _)| *at));
                }
            }
        }
        Ok(())
    }

    /// The first queued tasks of an owner that are not known to be damaged.
    fn queued(&mut self, tool: &ToolRef, owner: &Owner, limit: usize) -> Result<Vec<(Timestamp, TaskId)>, DiskError> {
        let mut queued = self.disk.queued(tool, owner, limit.saturating_add(self.damaged.len()))?;
        if !self.damaged.is_empty() {
            queued.retain(|(_, id)| !self.damaged.contains(&TaskKey { owner: owner.clone(), id: id.clone() }));
            queued.truncate(limit);
        }
        Ok(queued)
    }

    /// Claims one task. Its arguments are read first: if they are damaged, nothing has changed.
    fn claim_task(&mut self, key: &TaskKey, node: NodeId, now: Timestamp) -> Result<ClaimedTask, RequestFailure> {
        let input = self.disk.input(key)?.ok_or(StoreError::NotFound)?;
        let CommitResult { task, .. } = self.apply(key, &Event::Claim(Claim { node }), now)?;
        Ok(ClaimedTask { task, input })
    }

    fn record(
        &mut self,
        key: &TaskKey,
        fence: u64,
        entries: Vec<JournalEntry>,
        now: Timestamp,
    ) -> Result<(), RequestFailure> {
        let task = self.load(key)?.ok_or(StoreError::NotFound)?;
        for entry in longhaul_task::record(&task, fence, entries, now)? {
            self.insert_entry(&task, &entry)?;
        }
        Ok(())
    }

    fn write_journal(&mut self, task: &Task, write: &JournalWrite) -> Result<(), RequestFailure> {
        match write {
            JournalWrite::Insert(entry) => self.insert_entry(task, entry),
            JournalWrite::Answer { key, answer, at } => {
                if let Some((epoch, asked)) = self.disk.question(&task.key, key)? {
                    self.disk.replace_entry(&task.key, epoch, &asked.answered(answer.clone(), *at))?;
                }
                Ok(())
            }
        }
    }

    fn insert_entry(&mut self, task: &Task, entry: &JournalEntry) -> Result<(), RequestFailure> {
        let Some(existing) = self.disk.insert_entry(&task.key, task.epoch(), entry)? else { return Ok(()) };
        match entry.conflict_with(&existing) {
            EntryConflict::Keep => Ok(()),
            EntryConflict::Replace(entry) => Ok(self.disk.replace_entry(&task.key, task.epoch(), &entry)?),
            EntryConflict::Refuse(refused) => Err(refused.into()),
        }
    }

    /// The task with the changes of the open batch.
    fn load(&mut self, key: &TaskKey) -> Result<Option<Arc<Task>>, DiskError> {
        if let Some(task) = self.working.get(key) {
            return Ok(Some(Arc::clone(task)));
        }
        if self.deleted.contains(key) {
            return Ok(None);
        }
        if let Some(snapshot) = self.cache.get(key) {
            return Ok(Some(snapshot.task));
        }
        Ok(self.disk.task(key)?.map(Arc::new))
    }

    /// Makes a changed task visible to the rest of the batch, and to readers after the commit.
    fn stage(&mut self, task: Task) -> Arc<Task> {
        if let Some(not_before) = task.phase.not_before()
            && let Some(turns) = self.turns.of(&task.tool)
        {
            turns.queued(&task.key.owner, not_before);
        }
        let task = Arc::new(task);
        self.working.insert(task.key.clone(), Arc::clone(&task));
        self.publications.push(Publication::Task(Arc::clone(&task)));
        task
    }
}

enum RequestFailure {
    /// Fails this request only.
    Refused(StoreError),
    /// Fails the whole batch.
    Disk(DiskError),
}

impl From<DiskError> for RequestFailure {
    fn from(error: DiskError) -> Self {
        match error {
            DiskError::Unreadable(_) => Self::Refused(error.into()),
            error => Self::Disk(error),
        }
    }
}

impl From<StoreError> for RequestFailure {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

impl From<TransitionError> for RequestFailure {
    fn from(refused: TransitionError) -> Self {
        Self::Refused(refused.into())
    }
}
