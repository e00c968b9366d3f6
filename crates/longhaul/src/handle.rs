//! Changing what a server offers while it runs.

use std::sync::{Arc, OnceLock};

use longhaul_receiver::{EntryName, Receiver, WeakReceiver};

use crate::{Error, Prompt, Resource, ResourceTemplate, Tool};

/// Changes what a running server offers, and tells clients of changes. Clones are handles on the same server.
///
/// Take it with [`Server::handle`](crate::Server::handle) before the server starts, so that tools can use it:
///
/// ```
/// use longhaul::{Ctx, NoArgs, Resource, Server, Tool};
///
/// let server = Server::new("library").resources([]);
/// let handle = server.handle();
/// let server = server.tool(Tool::new("publish", move |_: Ctx, _: NoArgs| {
///     let handle = handle.clone();
///     async move {
///         handle.put_resource(Resource::text("report://2026", "Sales have doubled.")).await?;
///         handle.resource_updated("report://2026");
///         Ok("It is published.")
///     }
/// }));
/// ```
///
/// Clients that listen get a notification after each change. Those that a client has not read yet are merged.
#[derive(Debug, Clone, Default)]
pub struct ServerHandle {
    // A weak one: a tool may hold the handle, and the receiver holds the tools.
    receiver: Arc<OnceLock<WeakReceiver>>,
}

impl ServerHandle {
    /// Adds a tool, or replaces the one of its name. Tasks that exist go on; those that have not begun run with the new
    /// function. A tool with tasks cannot be replaced by another [version](Tool::version) of itself.
    pub async fn put_tool(&self, tool: Tool) -> Result<(), Error> {
        let (entry, tools) = tool.entry()?;
        self.receiver()?.put(entry, tools).await.map_err(Error::Change)
    }

    /// Removes a tool. Tasks that exist run to their end. Returns false if there is none of this name.
    pub async fn remove_tool(&self, name: &str) -> Result<bool, Error> {
        self.receiver()?.remove(EntryName::Tool(name)).await.map_err(Error::Change)
    }

    /// Adds a prompt, or replaces the one of its name.
    pub async fn put_prompt(&self, prompt: Prompt) -> Result<(), Error> {
        let (entry, tools) = prompt.split()?;
        self.receiver()?.put(entry, tools).await.map_err(Error::Change)
    }

    /// Removes a prompt. Returns false if there is none of this name.
    pub async fn remove_prompt(&self, name: &str) -> Result<bool, Error> {
        self.receiver()?.remove(EntryName::Prompt(name)).await.map_err(Error::Change)
    }

    /// Adds a resource, or replaces the one of its URI. Its subscribers are told with
    /// [`resource_updated`](Self::resource_updated).
    pub async fn put_resource(&self, resource: Resource) -> Result<(), Error> {
        let (entry, tools) = resource.split()?;
        self.receiver()?.put(entry, tools).await.map_err(Error::Change)
    }

    /// Adds a resource template, or replaces the one with the same text.
    pub async fn put_resource_template(&self, template: ResourceTemplate) -> Result<(), Error> {
        let (entry, tools) = template.split()?;
        self.receiver()?.put(entry, tools).await.map_err(Error::Change)
    }

    /// Removes a resource by its URI, or a resource template by its text. Returns false if there is none.
    pub async fn remove_resource(&self, uri: &str) -> Result<bool, Error> {
        self.receiver()?.remove(EntryName::Resource(uri)).await.map_err(Error::Change)
    }

    /// Tells the clients that have subscribed to this URI that its contents have changed. Does nothing if the server does
    /// not run.
    pub fn resource_updated(&self, uri: &str) {
        if let Ok(receiver) = self.receiver() {
            receiver.resource_updated(uri);
        }
    }

    pub(crate) fn set(&self, receiver: &Receiver) {
        // A server starts once.
        let _ = self.receiver.set(receiver.downgrade());
    }

    fn receiver(&self) -> Result<Receiver, Error> {
        self.receiver.get().and_then(WeakReceiver::upgrade).ok_or(Error::NotRunning)
    }
}
