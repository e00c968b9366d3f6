//! Which owner a connection counts for.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use longhaul_engine::{Budget, Share};
use longhaul_task::Owner;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// A connection, as its requests see it. It counts for the owner of its last request; before the first one the owner is not
/// known.
#[derive(Debug, Clone)]
pub(super) struct HttpConnection(Arc<ConnectionInner>);

#[derive(Debug)]
struct ConnectionInner {
    number: u64,
    owner: Mutex<Option<(Owner, Share)>>,
    close: Notify,
    ownerless: Arc<Ownerless>,
}

/// The connections that have sent no request of an owner yet. They count for no owner's share, so when all places are taken,
/// the oldest of them makes room for a new connection.
#[derive(Debug, Default)]
pub(super) struct Ownerless {
    /// By their numbers, which grow.
    connections: Mutex<BTreeMap<u64, Weak<ConnectionInner>>>,
    accepted: AtomicU64,
}

impl Ownerless {
    pub(super) fn connection(self: &Arc<Self>) -> HttpConnection {
        let number = self.accepted.fetch_add(1, Ordering::Relaxed);
        let (owner, close, ownerless) = (Mutex::default(), Notify::new(), Arc::clone(self));
        let inner = Arc::new(ConnectionInner { number, owner, close, ownerless });
        self.connections.lock().insert(number, Arc::downgrade(&inner));
        HttpConnection(inner)
    }

    pub(super) fn close_oldest(&self) {
        let oldest = self.connections.lock().pop_first();
        if let Some(connection) = oldest.and_then(|(_, connection)| connection.upgrade()) {
            connection.close.notify_one();
        }
    }

    /// Returns false if the connection is not among them: it is to be closed.
    fn remove(&self, number: u64) -> bool {
        self.connections.lock().remove(&number).is_some()
    }
}

impl HttpConnection {
    /// Counts the connection for this owner until another owner uses it or it is closed. Returns false if the owner has no
    /// room for one more, or if the connection is to be closed.
    pub(super) fn belongs_to(&self, owner: &Owner, connections: &Arc<Budget>) -> bool {
        let Self(inner) = self;
        let mut current = inner.owner.lock();
        if current.as_ref().is_some_and(|(same, _)| same == owner) {
            return true;
        }
        let had_owner = current.is_some();
        *current = connections.take(owner, 1).map(|share| (owner.clone(), share));
        current.is_some() && (had_owner || inner.ownerless.remove(inner.number))
    }

    /// Returns when the connection has to make room for another.
    pub(super) async fn closed(&self) {
        self.0.close.notified().await;
    }
}

impl Drop for ConnectionInner {
    fn drop(&mut self) {
        self.ownerless.remove(self.number);
    }
}
