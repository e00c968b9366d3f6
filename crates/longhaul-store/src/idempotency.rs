use std::sync::Arc;

use longhaul_task::TaskId;

use crate::StoreError;

/// The idempotency key of a request that creates a task, and the digest that identifies the request. The same request under
/// the same key finds the task instead of creating another, for as long as the task's family is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// The requestor's name for the task, unique for its owner.
    pub key: Arc<str>,
    /// The digest of the request. Requests with equal digests are the same.
    pub digest: [u8; 32],
}

/// The task that was created under an idempotency key, as a backend stores it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyedTask {
    /// The ID of the task.
    pub id: TaskId,
    /// The digest of the request that created the task.
    pub digest: [u8; 32],
}

impl KeyedTask {
    /// The ID of the task, if this request created it.
    pub fn of_request(self, request: &IdempotencyKey) -> Result<TaskId, StoreError> {
        if self.digest == request.digest { Ok(self.id) } else { Err(StoreError::IdempotencyKeyUsed) }
    }
}
