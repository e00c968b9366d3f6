use std::sync::Arc;

use longhaul_task::TaskId;

use crate::StoreError;

/// The key under which a requestor creates a task. A request that is repeated under the same key finds the task instead of
/// creating another, for as long as the task's family is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// Names one task of the owner.
    pub key: Arc<str>,
    /// Identifies the request: equal digests mean that it is the same one.
    pub digest: [u8; 32],
}

/// An idempotency key as a backend stores it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyedTask {
    /// The task that was created under the key.
    pub id: TaskId,
    /// The digest of the request that created it.
    pub digest: [u8; 32],
}

impl KeyedTask {
    /// The task, if this request is the one that created it.
    pub fn of_request(self, request: &IdempotencyKey) -> Result<TaskId, StoreError> {
        if self.digest == request.digest { Ok(self.id) } else { Err(StoreError::IdempotencyKeyUsed) }
    }
}
