//! Which owner a connection counts for.

use std::sync::Arc;

use longhaul_engine::{Budget, Share};
use longhaul_task::Owner;
use parking_lot::Mutex;

/// A connection, as its requests see it. It counts for the owner of its last request; before the first one the owner is not
/// known.
#[derive(Debug, Clone, Default)]
pub(super) struct HttpConnection(Arc<Mutex<Option<(Owner, Share)>>>);

impl HttpConnection {
    /// Counts the connection for this owner until another owner uses it or it is closed. Returns false if the owner has no
    /// room for one more.
    pub(super) fn belongs_to(&self, owner: &Owner, connections: &Arc<Budget>) -> bool {
        let mut current = self.0.lock();
        if current.as_ref().is_none_or(|(other, _)| other != owner) {
            *current = connections.take(owner, 1).map(|share| (owner.clone(), share));
        }
        current.is_some()
    }
}
