//! Changes of lists and resources, which the client of a session hears of on the stream that it listens on.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use longhaul_wire::jsonrpc::RpcError;
use longhaul_wire::list::{self, ListKind};
use longhaul_wire::resource;

use super::Session;
use crate::refusal;

/// What the client has subscribed to, and what it has not been told yet.
#[derive(Default)]
pub(super) struct SessionChanges {
    subscribed: HashSet<Arc<str>>,
    /// One notification is enough for any number of changes, so these are sets.
    lists: Vec<ListKind>,
    resources: BTreeSet<Arc<str>>,
    /// Whether a task sends them.
    is_sending: bool,
}

impl SessionChanges {
    /// The next notification; none if there are none or the client has no stream.
    fn next(&mut self) -> Option<String> {
        if !self.lists.is_empty() {
            return Some(list::changed(self.lists.remove(0), None));
        }
        self.resources.pop_first().map(|uri| resource::updated(&uri, None))
    }
}

impl Session {
    pub(crate) fn subscribe_to(&self, uri: &str) -> Result<(), RpcError> {
        let mut changes = self.changes.lock();
        if changes.subscribed.len() >= self.limits.resource_subscriptions_max && !changes.subscribed.contains(uri) {
            return Err(refusal::too_many_subscriptions(self.limits.resource_subscriptions_max));
        }
        changes.subscribed.insert(uri.into());
        Ok(())
    }

    pub(crate) fn unsubscribe_from(&self, uri: &str) {
        let mut changes = self.changes.lock();
        changes.subscribed.remove(uri);
        changes.resources.remove(uri);
    }

    pub(crate) fn tell_list_changed(self: &Arc<Self>, list: ListKind) {
        {
            let mut changes = self.changes.lock();
            if !changes.lists.contains(&list) {
                changes.lists.push(list);
            }
        }
        self.send_changes();
    }

    pub(crate) fn tell_resource_updated(self: &Arc<Self>, uri: &str) {
        {
            let mut changes = self.changes.lock();
            let Some(uri) = changes.subscribed.get(uri).cloned() else { return };
            changes.resources.insert(uri);
        }
        self.send_changes();
    }

    /// Sends what the client has not been told, if it listens. What is left is sent when it listens again.
    pub(super) fn send_changes(self: &Arc<Self>) {
        {
            let mut changes = self.changes.lock();
            let has_any = !changes.lists.is_empty() || !changes.resources.is_empty();
            if changes.is_sending || !has_any || self.listening_stream().is_none() {
                return;
            }
            changes.is_sending = true;
        }
        let session = Arc::clone(self);
        self.receiver.tracker.spawn(async move {
            while let Some((stream, message)) = session.next_change() {
                // A slow client is waited for; meanwhile further changes are merged.
                stream.send(message).await;
            }
        });
    }

    fn next_change(&self) -> Option<(Arc<crate::stream::MessageStream>, String)> {
        let mut changes = self.changes.lock();
        let next = self.listening_stream().and_then(|stream| Some((stream, changes.next()?)));
        changes.is_sending = next.is_some();
        next
    }
}
