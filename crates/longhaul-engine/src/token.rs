//! The beginning of the tokens of a task or a call.

use longhaul_task::Owner;
use sha2::{Digest as _, Sha256};

/// Bytes of the digest that a token shows.
const SHOWN_BYTES: usize = 16;

/// A digest of a task or a call. The ID itself would be a key to the task where callers are not told apart, and tokens are
/// sent to other services.
pub(crate) fn of(owner: &Owner, id: &str) -> String {
    let digest = Sha256::new().chain_update(owner.as_str()).chain_update([0]).chain_update(id).finalize();
    digest.iter().take(SHOWN_BYTES).map(|byte| format!("{byte:02x}")).collect()
}
