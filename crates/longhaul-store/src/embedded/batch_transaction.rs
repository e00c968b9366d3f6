//! Carries out the requests of one batch, in order, in one transaction.

use std::collections::BTreeSet;
use std::sync::Arc;

use longhaul_task::transition::{self, Claim};
use longhaul_task::{
    Change, ChildRange, DescendantScope, EntryConflict, Event, JournalEntry, JournalWrite, Json, NodeId, Owner, Scope,
    Surroundings, Task, TaskId, TaskKey, Timestamp, ToolRef, TransitionError,
};

use super::batch_changes::{BatchChanges, ChangedTask};
use super::disk::{DiskError, Transaction};
use super::task_cache::TaskCache;
use super::turns::Turns;
use super::write_request::{UnsavedProgress, WriteRequest, WriteResponse};
use crate::{ClaimRequest, ClaimedTask, CommitResult, CreateResult, NewTask, StoreError, ToolClaim};

/// The open transaction of a batch, and the state of the writer that its requests read and change.
pub(super) struct BatchTransaction<'a> {
    pub(super) transaction: Box<dyn Transaction + 'a>,
    pub(super) changes: BatchChanges,
    pub(super) cache: &'a TaskCache,
    pub(super) turns: &'a mut Turns,
    pub(super) damaged: &'a mut BTreeSet<TaskKey>,
    /// Whether the last request has written anything.
    pub(super) has_written: bool,
}

impl<'a> BatchTransaction<'a> {
    pub(super) fn carry_out(
        &mut self,
        request: &WriteRequest,
        now: Timestamp,
    ) -> Result<WriteResponse, RequestFailure> {
        self.has_written = false;
        match request {
            WriteRequest::Create(new) => self.create(new, now).map(WriteResponse::Created),
            WriteRequest::Apply(key, event) => self.apply(key, event, now).map(WriteResponse::Applied),
            WriteRequest::Claim(claim) => self.claim(claim, now).map(WriteResponse::Claimed),
            WriteRequest::Record(key, fence, entries) => {
                self.record(key, *fence, entries, now).map(|()| WriteResponse::Recorded)
            }
            WriteRequest::Secret(name, fresh) => Ok(WriteResponse::Secret(self.transaction.secret(name, *fresh)?)),
            WriteRequest::Verify => Ok(WriteResponse::Checked),
            WriteRequest::Check => {
                self.transaction.check()?;
                Ok(WriteResponse::Checked)
            }
        }
    }

    /// The transaction, for a write.
    fn writes(&mut self) -> &mut (dyn Transaction + 'a) {
        self.has_written = true;
        &mut *self.transaction
    }

    /// Writes progress that is published and not yet on the disk.
    pub(super) fn write_unsaved_progress(&mut self, progress: &UnsavedProgress) -> Result<(), DiskError> {
        for (key, (attempt, progress)) in progress {
            // Since the report, the task may have been deleted or claimed by another attempt.
            if self.load(key)?.is_some_and(|task| task.attempt == *attempt) {
                self.transaction.write_progress(key, progress)?;
            }
        }
        Ok(())
    }

    /// Returns the changes, which readers may now see.
    pub(super) fn commit(self) -> Result<BatchChanges, DiskError> {
        self.transaction.commit()?;
        Ok(self.changes)
    }

    fn create(&mut self, new: &NewTask, now: Timestamp) -> Result<CreateResult, RequestFailure> {
        let key = &new.create.key;
        if let Some(request) = &new.idempotency
            && let Some(keyed) = self.transaction.keyed_task(&key.owner, &request.key)?
        {
            let key = TaskKey { owner: key.owner.clone(), id: keyed.of_request(request)? };
            let task = self.load(&key)?.ok_or(StoreError::NotFound)?;
            return Ok(CreateResult { task, existed: true });
        }
        let task = self.insert(transition::create(&new.create, now), &new.input)?;
        if let Some(request) = &new.idempotency {
            self.writes().insert_key(key, request)?;
        }
        Ok(CreateResult { task, existed: false })
    }

    fn insert(&mut self, task: Task, input: &Json) -> Result<Arc<Task>, RequestFailure> {
        // The disk detects a duplicate ID. A separate query before each creation would make it a tenth slower.
        if !self.transaction.insert(&task, input)? {
            return Err(TransitionError::DuplicateId.into());
        }
        self.has_written = true;
        Ok(self.stage(task))
    }

    fn apply(&mut self, key: &TaskKey, event: &Event, now: Timestamp) -> Result<CommitResult, RequestFailure> {
        let task = self.load(key)?.ok_or(StoreError::NotFound)?;
        let surroundings = self.surroundings(&task, event.scope(&task))?;
        let change = transition::apply(&task, event, &surroundings, now).map_err(StoreError::from)?;
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
                surroundings.open_descendants = self.transaction.open_descendants(&task.key)?;
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
            surroundings.attempt_wrote_at = self.transaction.last_entry_of(&task.key, task.epoch(), task.attempt)?;
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
            if self.transaction.has_open_child(key, *range, except)? {
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
            let keys = self.writes().delete_family(&before.key)?;
            self.changes.delete(keys);
            return Ok(CommitResult { task: Arc::new(change.task), effects: change.effects });
        }
        // First, because an entry can be refused: usually nothing was written yet then.
        for write in &change.journal {
            self.write_journal(before, write)?;
        }
        if let Some(attempt) = &change.ended_attempt {
            self.writes().insert_attempt(&before.key, attempt)?;
        }
        self.writes().update(before, &change.task)?;
        for (child, input) in change.children {
            self.insert(child, &input)?;
        }
        for relative in change.relatives {
            let mut loaded = surroundings.open_descendants.iter().chain(&surroundings.parent);
            if let Some(before) = loaded.find(|task| task.key == relative.key) {
                self.writes().update(before, &relative)?;
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
            let owners = self.transaction.queued_owners(tool)?;
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
        let mut queued = self.transaction.queued(tool, owner, limit.saturating_add(self.damaged.len()))?;
        if !self.damaged.is_empty() {
            queued.retain(|(_, id)| !self.damaged.contains(&TaskKey { owner: owner.clone(), id: id.clone() }));
            queued.truncate(limit);
        }
        Ok(queued)
    }

    /// Claims one task. Its arguments are read first: if they are damaged, nothing has changed.
    fn claim_task(&mut self, key: &TaskKey, node: NodeId, now: Timestamp) -> Result<ClaimedTask, RequestFailure> {
        let input = self.transaction.input(key)?.ok_or(StoreError::NotFound)?;
        let CommitResult { task, .. } = self.apply(key, &Event::Claim(Claim { node }), now)?;
        Ok(ClaimedTask { task, input })
    }

    fn record(
        &mut self,
        key: &TaskKey,
        fence: u64,
        entries: &[JournalEntry],
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
                if let Some((epoch, asked)) = self.transaction.question(&task.key, key)? {
                    self.writes().replace_entry(&task.key, epoch, &asked.answered(answer.clone(), *at))?;
                }
                Ok(())
            }
        }
    }

    fn insert_entry(&mut self, task: &Task, entry: &JournalEntry) -> Result<(), RequestFailure> {
        let Some(existing) = self.transaction.insert_entry(&task.key, task.epoch(), entry)? else {
            self.has_written = true;
            return Ok(());
        };
        match entry.conflict_with(&existing) {
            EntryConflict::Keep => Ok(()),
            EntryConflict::Replace(entry) => Ok(self.writes().replace_entry(&task.key, task.epoch(), &entry)?),
            EntryConflict::Refuse(refused) => Err(refused.into()),
        }
    }

    /// The task with the changes of the open batch.
    fn load(&mut self, key: &TaskKey) -> Result<Option<Arc<Task>>, DiskError> {
        match self.changes.task(key) {
            Some(ChangedTask::Written(task)) => return Ok(Some(Arc::clone(task))),
            Some(ChangedTask::Deleted) => return Ok(None),
            None => {}
        }
        if let Some(snapshot) = self.cache.get(key) {
            return Ok(Some(snapshot.task));
        }
        Ok(self.transaction.task(key)?.map(Arc::new))
    }

    /// Makes a changed task visible to the rest of the batch, and to readers after the commit.
    fn stage(&mut self, task: Task) -> Arc<Task> {
        if let Some(not_before) = task.phase.not_before()
            && let Some(turns) = self.turns.of(&task.tool)
        {
            turns.queued(&task.key.owner, not_before);
        }
        let task = Arc::new(task);
        self.changes.write(&task);
        task
    }
}

pub(super) enum RequestFailure {
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
