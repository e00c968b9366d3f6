//! The receiver: one per host.

use std::fmt;
use std::sync::Arc;

use longhaul_engine::{Engine, EngineError, secret};
use longhaul_task::Owner;
use longhaul_wire::ext2026::{Headers, ServerInfo};
use longhaul_wire::jsonrpc::Request;
use tokio_util::sync::CancellationToken;

use crate::seal::Seal;
use crate::{Catalogue, Reply, ext2026};

/// How a receiver presents itself.
#[derive(Debug, Clone)]
pub struct Options {
    /// The server's name.
    pub name: String,
    /// The server's version.
    pub version: String,
    /// A word to models on how to use it.
    pub instructions: Option<String>,
    /// How often a client should ask about a task.
    pub poll_interval_ms: u64,
    /// For how long a client may keep the lists it got.
    pub list_ttl_ms: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            name: "longhaul".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            instructions: None,
            poll_interval_ms: 1_000,
            list_ttl_ms: 60_000,
        }
    }
}

/// Receives messages and answers them. Clones are handles on the same one.
#[derive(Clone)]
pub struct Receiver {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) engine: Engine,
    pub(crate) catalogue: Catalogue,
    pub(crate) options: Options,
    pub(crate) server: ServerInfo,
    pub(crate) seal: Seal,
    pub(crate) closing: CancellationToken,
}

impl Receiver {
    /// A receiver for an engine and the tools that it runs.
    pub async fn new(engine: Engine, catalogue: Catalogue, options: Options) -> Result<Self, EngineError> {
        let key = engine.store().secret("request-state", secret(&**engine.chance())).await?;
        let server = ServerInfo::new(&options.name, &options.version);
        let seal = Seal::new(&key);
        let closing = CancellationToken::new();
        Ok(Self { shared: Arc::new(Shared { engine, catalogue, options, server, seal, closing }) })
    }

    /// Answers one request of the stateless era. `headers` are those of HTTP; other transports have none.
    pub async fn receive(&self, owner: &Owner, request: &Request<'_>, headers: Option<&(dyn Headers + Sync)>) -> Reply {
        ext2026::receive(&self.shared, owner, request, headers).await
    }

    /// The engine behind it.
    pub fn engine(&self) -> &Engine {
        &self.shared.engine
    }

    /// Ends every open subscription gracefully.
    pub fn close(&self) {
        self.shared.closing.cancel();
    }
}

impl fmt::Debug for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").field("name", &self.shared.options.name).finish_non_exhaustive()
    }
}
