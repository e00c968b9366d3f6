//! The beginning of the tokens of a task or a call.

use longhaul_task::Owner;
use sha2::{Digest as _, Sha256};

/// A digest of a task or a call. The ID itself would be a key to the task where callers are not told apart, and tokens are
/// sent to other services.
pub(crate) fn of(owner: &Owner, id: &str) -> String {
    let digest = Sha256::new().chain_update(owner.as_str()).chain_update([0]).chain_update(id).finalize();
    // 128 bits are enough to be different, and short enough for the keys of other services.
    let (shown, _) = digest.split_at(size_of::<u128>());
    format!("{:032x}", u128::from_be_bytes(shown.try_into().unwrap_or_default()))
}
