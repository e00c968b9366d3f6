//! The writer of an embedded store: carries out each batch in one transaction with one commit, then publishes its changes.
//!
//! It has no thread, no channel and no clock: a [`WriterLoop`](super::WriterLoop) hands it batches and the time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use longhaul_task::{TaskKey, Timestamp};

use super::batch_changes::BatchChanges;
use super::batch_transaction::{BatchTransaction, RequestFailure};
use super::disk::{Disk, DiskError};
use super::task_cache::TaskCache;
use super::turns::Turns;
use super::write_request::{UnsavedProgress, WriteRequest, WriteResponse};
use crate::{StoreError, Watchers};

pub(super) struct Writer<D> {
    disk: D,
    cache: Arc<TaskCache>,
    watchers: Arc<Watchers>,
    turns: Turns,
    /// Queued tasks that cannot be read. Claims pass over them.
    damaged: BTreeSet<TaskKey>,
    /// Why the writer has stopped for good.
    stopped: Option<String>,
    /// Why the last batch was not written.
    last_failure: Option<StoreError>,
}

impl<D: Disk> Writer<D> {
    pub(super) fn new(disk: D, cache: Arc<TaskCache>, watchers: Arc<Watchers>) -> Self {
        Self {
            disk,
            cache,
            watchers,
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
        requests: &[WriteRequest],
        progress: &UnsavedProgress,
        now: Timestamp,
    ) -> Vec<Result<WriteResponse, StoreError>> {
        let count = requests.len();
        if let Some(reason) = &self.stopped {
            return vec![Err(StoreError::Stopped(reason.clone())); count];
        }
        match self.commit_batch(requests, progress, now) {
            Ok((responses, changes)) => {
                changes.publish(&self.cache, &self.watchers);
                self.last_failure = None;
                responses
            }
            Err(error) => vec![Err(self.fail(error)); count],
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

    /// Carries out the requests and commits them. A refused request leaves nothing: if it has written something before it was
    /// refused, all others are carried out again without it. That is rare, because most refusals come before the first write.
    fn commit_batch(
        &mut self,
        requests: &[WriteRequest],
        progress: &UnsavedProgress,
        now: Timestamp,
    ) -> Result<(Responses, BatchChanges), DiskError> {
        let mut refused = BTreeMap::new();
        loop {
            let failure = match self.try_batch(requests, &refused, progress, now) {
                Ok(done) => return Ok(done),
                Err(failure) => failure,
            };
            self.turns.clear();
            match failure {
                BatchFailure::Disk(error) => return Err(error),
                BatchFailure::RefusedAfterWrite(index, refusal) => drop(refused.insert(index, refusal)),
            }
        }
    }

    /// `refused` has the requests that are not carried out, by their index.
    fn try_batch(
        &mut self,
        requests: &[WriteRequest],
        refused: &BTreeMap<usize, StoreError>,
        progress: &UnsavedProgress,
        now: Timestamp,
    ) -> Result<(Responses, BatchChanges), BatchFailure> {
        let mut batch = BatchTransaction {
            transaction: self.disk.begin()?,
            changes: BatchChanges::with_capacity(requests.len()),
            cache: &self.cache,
            turns: &mut self.turns,
            damaged: &mut self.damaged,
            has_written: false,
        };
        let mut responses = Vec::with_capacity(requests.len());
        for (index, request) in requests.iter().enumerate() {
            if let Some(refusal) = refused.get(&index) {
                responses.push(Err(refusal.clone()));
                continue;
            }
            match batch.carry_out(request, now) {
                Ok(response) => responses.push(Ok(response)),
                Err(RequestFailure::Refused(refusal)) if batch.has_written => {
                    return Err(BatchFailure::RefusedAfterWrite(index, refusal));
                }
                Err(RequestFailure::Refused(refusal)) => responses.push(Err(refusal)),
                Err(RequestFailure::Disk(error)) => return Err(error.into()),
            }
        }
        batch.write_unsaved_progress(progress)?;
        let changes = batch.commit()?;
        self.disk.verify()?;
        Ok((responses, changes))
    }
}

/// In the order of the requests.
type Responses = Vec<Result<WriteResponse, StoreError>>;

/// Why a batch was not committed.
enum BatchFailure {
    Disk(DiskError),
    /// The request with this index was refused when a part of it was written.
    RefusedAfterWrite(usize, StoreError),
}

impl From<DiskError> for BatchFailure {
    fn from(error: DiskError) -> Self {
        Self::Disk(error)
    }
}

#[cfg(test)]
mod tests {
    use longhaul_task::transition::{Create, NewChild, Spawn};
    use longhaul_task::{Event, Json, NodeId, Owner, Policy, Retention, TaskId, ToolRef, TransitionError};

    use super::*;
    use crate::NewTask;
    use crate::embedded::Hashing;
    use crate::memory::MemoryDisk;

    fn new_task(id: &str) -> NewTask {
        let create = Create {
            key: TaskKey { owner: Owner::parse("ada").unwrap(), id: TaskId::parse(id).unwrap() },
            tool: ToolRef::new("echo", "1"),
            origin: "test".into(),
            policy: Policy::default(),
            retention: Retention::Unlimited,
            claimed_by: Some(NodeId::mint([7; 16])),
            first_fence: 0,
        };
        NewTask { create, input: Json::from_text("{}"), idempotency: None }
    }

    #[test]
    fn a_batch_is_committed_without_a_request_that_was_refused_after_a_write() {
        let cache = Arc::new(TaskCache::new(1 << 20, Hashing::Fixed));
        let mut writer = Writer::new(MemoryDisk::default(), Arc::clone(&cache), Arc::default());
        let parent = new_task("parent");
        let twin = || NewChild { create: new_task("twin").create, input: Json::from_text("{}") };
        let twins = Spawn { fence: 1, children: vec![twin(), twin()], entries: Vec::new() };
        let requests = [
            WriteRequest::Create(parent.clone()),
            WriteRequest::Apply(parent.create.key.clone(), Event::Spawn(Box::new(twins))),
            WriteRequest::Create(new_task("next")),
        ];
        let responses = writer.batch(&requests, &UnsavedProgress::new(), Timestamp::from_ms(1_000_000));
        let [Ok(_), Err(StoreError::Refused(refusal)), Ok(_)] = &responses[..] else { panic!("{responses:?}") };
        assert_eq!(*refusal, TransitionError::DuplicateId);
        assert_eq!(cache.get(&parent.create.key).unwrap().task.family.children, 0);
        assert!(cache.get(&new_task("twin").create.key).is_none());
        assert!(cache.get(&new_task("next").create.key).is_some());
    }
}
