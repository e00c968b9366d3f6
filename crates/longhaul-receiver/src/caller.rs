//! Who is calling, as far as the transport could find out.

use longhaul_task::Owner;
use tokio_util::sync::CancellationToken;

/// Who is at the other end.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Caller {
    /// The owner of what it makes. Whatever it asks for is looked for among what this owner has, and nowhere else.
    pub owner: Owner,
    /// Whether the owner can be told from others. If not, everybody is this owner, and a task's ID is the only key to it:
    /// tasks are not listed, and not kept for long.
    pub is_known: bool,
    /// Cancelled when the right to call ends. Streams that are open then end; tasks go on.
    pub revoked: CancellationToken,
}

impl Caller {
    /// Somebody who has shown who it is.
    pub fn known(owner: Owner) -> Self {
        Self { owner, is_known: true, revoked: CancellationToken::new() }
    }

    /// Somebody who could be anybody.
    pub fn anonymous(owner: Owner) -> Self {
        Self { owner, is_known: false, revoked: CancellationToken::new() }
    }
}
