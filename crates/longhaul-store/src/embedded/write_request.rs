//! The requests to the writer, and its responses.

use std::collections::BTreeMap;
use std::sync::Arc;

use longhaul_task::{Event, JournalEntry, Progress, TaskKey};

use crate::{ClaimRequest, ClaimedTask, CommitResult, CreateResult, NewTask};

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
