//! The receiver: one per host.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use longhaul_engine::{Engine, EngineError, secret};
use longhaul_task::{Owner, Retention, TaskKey};
use longhaul_wire::ext2026::{Headers, ServerInfo};
use longhaul_wire::jsonrpc::{Request, RpcError};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::rates::Rates;
use crate::seal::Seal;
use crate::{Caller, Catalogue, Kind, RateLimits, Reply, ext2026};

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
    /// How long a requestor may have a task kept for whose tool sets no limit from its creation.
    pub ttl_ms_max: u64,
    /// How long a task of somebody who could be anybody is kept, whatever its tool says or its requestor wants: nobody can
    /// list such tasks, and nobody but whoever knows an ID will ever come for one.
    pub anonymous_kept_ms_max: u64,
    /// How often one owner may ask.
    pub rates: RateLimits,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            name: "longhaul".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            instructions: None,
            poll_interval_ms: 1_000,
            list_ttl_ms: 60_000,
            ttl_ms_max: 30 * 24 * 60 * 60 * 1_000,
            anonymous_kept_ms_max: 60 * 60 * 1_000,
            rates: RateLimits::default(),
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
    pub(crate) rates: Rates,
    pub(crate) server: ServerInfo,
    pub(crate) seal: Seal,
    /// For the tokens of sessions and the cursors of lists.
    pub(crate) session_seal: Seal,
    /// Which session is asked what a task wants to know: the one that made it or looked at it last.
    pub(crate) asked: Mutex<HashMap<TaskKey, u64>>,
    pub(crate) closing: CancellationToken,
    /// What goes on beside the requests, for the sessions of the stateful era.
    pub(crate) tracker: TaskTracker,
}

impl Receiver {
    /// A receiver for an engine and the tools that it runs.
    pub async fn new(engine: Engine, catalogue: Catalogue, options: Options) -> Result<Self, EngineError> {
        let key = engine.store().secret("request-state", secret(&**engine.chance())).await?;
        let session_key = engine.store().secret("session", secret(&**engine.chance())).await?;
        let server = ServerInfo::new(&options.name, &options.version);
        let (seal, session_seal) = (Seal::new(&key), Seal::new(&session_key));
        let (asked, closing) = (Mutex::default(), CancellationToken::new());
        let shared = Shared {
            engine,
            catalogue,
            rates: Rates::new(&options.rates),
            options,
            server,
            seal,
            session_seal,
            asked,
            closing,
            tracker: TaskTracker::new(),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Answers one request of the stateless era. `headers` are those of HTTP; other transports have none.
    pub async fn receive(
        &self,
        caller: &Caller,
        request: &Request<'_>,
        headers: Option<&(dyn Headers + Sync)>,
    ) -> Reply {
        ext2026::receive(&self.shared, caller, request, headers).await
    }

    /// Counts a request that has no message; says when to try again if it is one too many.
    pub fn admit(&self, owner: &Owner, kind: Kind) -> Result<(), RpcError> {
        self.shared.rates.admit(owner, kind)
    }

    /// Forgets what need not be known any more. To be called now and then.
    pub fn tidy(&self) {
        self.shared.rates.tidy();
    }

    /// The engine behind it.
    pub fn engine(&self) -> &Engine {
        &self.shared.engine
    }

    /// Ends every open subscription gracefully.
    pub fn close(&self) {
        self.shared.closing.cancel();
    }

    /// How much goes on for sessions: requests that are under way, tasks that are followed.
    pub fn session_jobs(&self) -> usize {
        self.shared.tracker.len()
    }

    /// Waits until nothing goes on any more for sessions, all of which have ended.
    pub async fn finished(&self) {
        self.shared.tracker.close();
        self.shared.tracker.wait().await;
    }
}

impl Shared {
    /// How long a task is kept that is to be kept so long, for a caller that is known or could be anybody.
    pub(crate) fn retention(&self, wanted: Retention, is_known: bool) -> Retention {
        if is_known { wanted } else { wanted.at_most(self.options.anonymous_kept_ms_max) }
    }
}

impl fmt::Debug for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").field("name", &self.shared.options.name).finish_non_exhaustive()
    }
}
