//! The caller of a request, as identified by the transport.

use longhaul_task::Owner;
use tokio_util::sync::CancellationToken;

/// The caller of a request.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Caller {
    /// The owner of the tasks that the caller creates. Only tasks of this owner can be found.
    pub owner: Owner,
    /// Whether the caller has identified itself. If not, all callers are one owner, and a task's ID is the only key to it:
    /// tasks are not listed, and not kept for long.
    pub is_identified: bool,
    /// Cancelled when the right to call ends. Open streams then end; tasks go on.
    pub revoked: CancellationToken,
}

impl Caller {
    /// A caller that has identified itself.
    pub fn known(owner: Owner) -> Self {
        Self { owner, is_identified: true, revoked: CancellationToken::new() }
    }

    /// A caller that has not identified itself.
    pub fn anonymous(owner: Owner) -> Self {
        Self { owner, is_identified: false, revoked: CancellationToken::new() }
    }
}
