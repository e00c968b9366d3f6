use std::sync::Arc;

use longhaul_engine::{EngineError, EngineTool};
use longhaul_wire::list::ListKind;
use parking_lot::RwLock;
use tokio::sync::{broadcast, watch};

use super::{Catalogue, CatalogueEntry, EntryName};
use crate::Receiver;

/// Changes of resources that a subscriber may be behind before it is told that all of its resources have changed.
const UPDATES_BEHIND_MAX: usize = 1_024;

/// The catalogue of a running server.
pub(crate) struct SharedCatalogue {
    current: RwLock<Arc<Catalogue>>,
    /// Held while a change is made, so that engine and catalogue change in the same order.
    changing: tokio::sync::Mutex<()>,
    /// How often each list has changed.
    lists: watch::Sender<[u64; ListKind::ALL.len()]>,
    /// The URIs of resources whose contents have changed.
    resources: broadcast::Sender<Arc<str>>,
}

/// The changes after the moment at which it was made.
pub(crate) struct CatalogueChanges {
    lists: watch::Receiver<[u64; ListKind::ALL.len()]>,
    seen: [u64; ListKind::ALL.len()],
    resources: broadcast::Receiver<Arc<str>>,
}

/// Something that has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CatalogueChange {
    Lists(Vec<ListKind>),
    Resource(Arc<str>),
    /// So many that they are not known one by one.
    AnyResource,
}

impl SharedCatalogue {
    pub(crate) fn new(catalogue: Catalogue) -> Self {
        Self {
            current: RwLock::new(Arc::new(catalogue)),
            changing: tokio::sync::Mutex::default(),
            lists: watch::channel([0; ListKind::ALL.len()]).0,
            resources: broadcast::channel(UPDATES_BEHIND_MAX).0,
        }
    }

    /// The catalogue as it is now.
    pub(crate) fn current(&self) -> Arc<Catalogue> {
        Arc::clone(&self.current.read())
    }

    pub(crate) fn changes(&self) -> CatalogueChanges {
        let (mut lists, resources) = (self.lists.subscribe(), self.resources.subscribe());
        let seen = *lists.borrow_and_update();
        CatalogueChanges { lists, seen, resources }
    }

    /// Puts a new catalogue into the place of the current one.
    fn change<T>(&self, change: impl FnOnce(&mut Catalogue) -> T) -> T {
        let mut next = Catalogue::clone(&self.current());
        let changed = change(&mut next);
        *self.current.write() = Arc::new(next);
        changed
    }
}

impl CatalogueChanges {
    pub(crate) async fn next(&mut self) -> CatalogueChange {
        tokio::select! {
            Ok(()) = self.lists.changed() => {
                let now = *self.lists.borrow_and_update();
                let before = std::mem::replace(&mut self.seen, now);
                let changed = ListKind::ALL.into_iter().zip(before.into_iter().zip(now));
                CatalogueChange::Lists(changed.filter(|(_, (before, now))| before != now).map(|(list, _)| list).collect())
            }
            updated = self.resources.recv() => match updated {
                Ok(uri) => CatalogueChange::Resource(uri),
                Err(broadcast::error::RecvError::Lagged(_)) => CatalogueChange::AnyResource,
                // The catalogue lives as long as its receiver, which holds the sender.
                Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
            },
        }
    }
}

impl EntryName<'_> {
    fn list(self) -> ListKind {
        match self {
            Self::Tool(_) => ListKind::Tools,
            Self::Prompt(_) => ListKind::Prompts,
            Self::Resource(_) => ListKind::Resources,
        }
    }
}

impl Receiver {
    /// Adds an entry while the server runs, or replaces the one of its name. Clients that listen are told.
    pub async fn put(&self, entry: CatalogueEntry, engine_tools: Vec<EngineTool>) -> Result<(), EngineError> {
        let catalogue = &self.inner.catalogue;
        let _changing = catalogue.changing.lock().await;
        // The engine is first: what is listed can be called.
        for tool in engine_tools {
            self.inner.engine.add_tool(tool).await?;
        }
        let list = match &entry {
            CatalogueEntry::Tool(_) => ListKind::Tools,
            CatalogueEntry::Prompt(_) => ListKind::Prompts,
            CatalogueEntry::Resource(_) => ListKind::Resources,
        };
        let names = entry.engine_names();
        let replaced = catalogue.change(|next| next.put(entry));
        for name in replaced.iter().flat_map(CatalogueEntry::engine_names).filter(|name| !names.contains(name)) {
            self.inner.engine.remove_tool(&name).await?;
        }
        self.tell_list_changed(list);
        Ok(())
    }

    /// Removes an entry while the server runs. Its tasks that exist run to their end. Returns false if there is none of
    /// this name.
    pub async fn remove(&self, name: EntryName<'_>) -> Result<bool, EngineError> {
        let catalogue = &self.inner.catalogue;
        let _changing = catalogue.changing.lock().await;
        let Some(removed) = catalogue.change(|next| next.remove(name)) else { return Ok(false) };
        self.tell_list_changed(name.list());
        for name in removed.engine_names() {
            self.inner.engine.remove_tool(&name).await?;
        }
        Ok(true)
    }

    /// Tells the clients that have subscribed to a resource that its contents have changed.
    pub fn resource_updated(&self, uri: &str) {
        // It fails if there is no subscription.
        let _ = self.inner.catalogue.resources.send(uri.into());
        for session in self.inner.sessions.all() {
            session.tell_resource_updated(uri);
        }
    }

    fn tell_list_changed(&self, list: ListKind) {
        self.inner.catalogue.lists.send_modify(|counts| counts[list as usize] += 1);
        for session in self.inner.sessions.all() {
            session.tell_list_changed(list);
        }
    }
}
