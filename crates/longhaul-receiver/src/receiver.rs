//! The receiver: one per host.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use longhaul_engine::{BudgetUse, Engine, EngineError, secret};
use longhaul_task::{TaskId, TaskKey};
use longhaul_wire::jsonrpc::RpcError;
use longhaul_wire::{Cache, Generation, ServerInfo};
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::catalogue::SharedCatalogue;
use crate::rates::Rates;
use crate::seal::Seal;
use crate::session::table::SessionTable;
use crate::stream::KeptBytes;
use crate::ticket::{TicketCache, Tickets};
use crate::{Catalogue, RateLimits, SessionLimits, TicketOptions, refusal};

/// How long after the stop of the server a request may go on before it is answered with an error. Connections are closed
/// a little later.
const RESPONSE_AT_STOP_TIME_MAX: Duration = Duration::from_secs(4);

/// How a receiver presents itself, and what its clients may use.
#[derive(Debug, Clone)]
pub struct ReceiverOptions {
    /// The server's name.
    pub name: String,
    /// The server's version.
    pub version: String,
    /// Instructions for models that use the server.
    pub instructions: Option<String>,
    /// The poll interval that clients are asked to keep.
    pub poll_interval_ms: u64,
    /// How long clients may cache lists.
    pub list_ttl_ms: u64,
    /// Entries on one page of the lists of tools, prompts, resources and templates.
    pub list_page_max: usize,
    /// The longest retention that a requestor can choose for a task whose tool sets none from its creation.
    pub ttl_ms_max: u64,
    /// The longest retention of an anonymous task. Only a client that knows its ID can find it, because anonymous
    /// tasks are not listed.
    pub anonymous_kept_ms_max: u64,
    /// How often one owner may ask.
    pub rates: RateLimits,
    /// What sessions may use.
    pub sessions: SessionLimits,
    /// What clients without tasks get for a call that takes long; `None`: their calls are not stored, and end with them.
    pub tickets: Option<TicketOptions>,
}

impl Default for ReceiverOptions {
    fn default() -> Self {
        Self {
            name: "longhaul".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            instructions: None,
            poll_interval_ms: 1_000,
            list_ttl_ms: 60_000,
            list_page_max: 500,
            ttl_ms_max: 30 * 24 * 60 * 60 * 1_000,
            anonymous_kept_ms_max: 60 * 60 * 1_000,
            rates: RateLimits::default(),
            sessions: SessionLimits::default(),
            tickets: Some(TicketOptions::default()),
        }
    }
}

/// Answers the messages of clients. Clones are handles on the same receiver.
#[derive(Clone)]
pub struct Receiver {
    pub(crate) inner: Arc<ReceiverInner>,
}

/// A handle that does not keep the receiver alive.
#[derive(Clone)]
pub struct WeakReceiver(Weak<ReceiverInner>);

impl WeakReceiver {
    pub fn upgrade(&self) -> Option<Receiver> {
        self.0.upgrade().map(|inner| Receiver { inner })
    }
}

impl fmt::Debug for WeakReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakReceiver").finish_non_exhaustive()
    }
}

pub(crate) struct ReceiverInner {
    pub(crate) engine: Engine,
    pub(crate) catalogue: SharedCatalogue,
    ticket_cache: TicketCache,
    pub(crate) options: ReceiverOptions,
    pub(crate) rates: Rates,
    pub(crate) server: ServerInfo,
    /// Seals what stateless clients keep between two rounds of a call.
    pub(crate) seal: Seal,
    /// Seals the tokens, tickets and cursors of sessions.
    pub(crate) session_seal: Seal,
    pub(crate) sessions: SessionTable,
    /// What streams keep for clients that come back.
    pub(crate) kept: Arc<KeptBytes>,
    /// The session that a task's questions are put to: the one that created the task or looked at it last.
    pub(crate) asked_session: Mutex<HashMap<TaskKey, u64>>,
    /// The labels of the generations, shared by all tasks.
    origins: Vec<(Generation, Arc<str>)>,
    pub(crate) closing: CancellationToken,
    /// When `closing` was cancelled.
    closing_since: OnceLock<Instant>,
    /// Everything that runs beside the requests.
    pub(crate) tracker: TaskTracker,
}

impl Receiver {
    /// A receiver for an engine and the tools that it runs.
    pub async fn new(engine: Engine, catalogue: Catalogue, options: ReceiverOptions) -> Result<Self, EngineError> {
        let key = engine.store().secret("request-state", secret(&**engine.random())).await?;
        let session_key = engine.store().secret("session", secret(&**engine.random())).await?;
        let inner = ReceiverInner {
            engine,
            catalogue: SharedCatalogue::new(catalogue),
            ticket_cache: TicketCache::new(options.tickets.clone()),
            rates: Rates::new(&options.rates),
            server: ServerInfo::new(&options.name, &options.version),
            sessions: SessionTable::new(options.sessions.sessions_max),
            kept: KeptBytes::new(options.sessions.all_kept_bytes_max),
            options,
            seal: Seal::new(&key),
            session_seal: Seal::new(&session_key),
            asked_session: Mutex::default(),
            origins: Generation::ALL.iter().map(|generation| (*generation, generation.label().into())).collect(),
            closing: CancellationToken::new(),
            closing_since: OnceLock::new(),
            tracker: TaskTracker::new(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Drops expired state: rates of idle owners, idle sessions, streams whose clients did not come back. Runs until
    /// `stop`, then closes the streams that would not end by themselves.
    pub async fn tidy_until(&self, stop: CancellationToken) {
        let limits = &self.inner.options.sessions;
        let interval = (limits.idle_time_max.min(limits.broken_time_max) / 4)
            .clamp(Duration::from_millis(10), Duration::from_secs(15));
        while stop.run_until_cancelled(tokio::time::sleep(interval)).await.is_some() {
            self.inner.rates.tidy();
            // Without the store's time, sessions are tidied in the next round.
            if let Ok(now) = self.inner.engine.now().await {
                self.inner.sessions.tidy(now, limits.idle_time_max);
            }
        }
        self.inner.sessions.stop_listening();
    }

    /// A handle that does not keep it alive.
    pub fn downgrade(&self) -> WeakReceiver {
        WeakReceiver(Arc::downgrade(&self.inner))
    }

    /// The engine behind it.
    pub fn engine(&self) -> &Engine {
        &self.inner.engine
    }

    /// Ends every subscription with its response, and waits for results soon after.
    pub fn close(&self) {
        self.inner.closing_since.get_or_init(Instant::now);
        self.inner.closing.cancel();
    }

    /// Ends all sessions of this process, and waits for everything that runs for them.
    pub async fn end_sessions(&self) {
        self.inner.sessions.end_all();
        self.finished().await;
    }

    /// Waits for everything that runs beside the requests.
    pub async fn finished(&self) {
        self.inner.tracker.close();
        self.inner.tracker.wait().await;
    }

    /// How many sessions are in memory.
    pub fn sessions(&self) -> usize {
        self.inner.sessions.len()
    }

    /// The resources that owners share, for metrics.
    pub fn budgets(&self) -> Vec<BudgetUse> {
        let own = [self.inner.sessions.usage(), self.inner.kept.usage()];
        own.into_iter().chain(self.inner.engine.budgets()).collect()
    }

    /// How much runs beside the requests: requests on streams, followed tasks.
    pub fn session_jobs(&self) -> usize {
        self.inner.tracker.len()
    }
}

impl ReceiverInner {
    /// The tools for clients without tasks; `None` if the operator turned them off.
    pub(crate) fn tickets(&self) -> Option<Arc<Tickets>> {
        self.ticket_cache.current(&self.catalogue.current())
    }

    pub(crate) fn origin(&self, generation: Generation) -> Arc<str> {
        let known = self.origins.iter().find(|(known, _)| *known == generation);
        known.map_or_else(|| generation.label().into(), |(_, label)| Arc::clone(label))
    }

    /// Resolves when the server stops and requests that go on must be answered.
    pub(crate) async fn response_time_over(&self) {
        self.closing.cancelled().await;
        let since = *self.closing_since.get_or_init(Instant::now);
        // Boxed, because a timer would make the future of every call larger.
        Box::pin(tokio::time::sleep_until(since + RESPONSE_AT_STOP_TIME_MAX)).await;
    }

    pub(crate) fn list_cache(&self) -> Cache {
        Cache { ttl_ms: self.options.list_ttl_ms, is_public: true }
    }

    /// A new ID for a task, or for a call that may become one.
    pub(crate) async fn mint_id(&self) -> Result<TaskId, RpcError> {
        let now = self.engine.now().await.map_err(|error| refusal::of_engine(&error))?;
        Ok(TaskId::mint(now, self.engine.random().bits()))
    }

    /// 64 random bits, for names that must not repeat.
    pub(crate) fn random_number(&self) -> u64 {
        let bits = self.engine.random().bits();
        u64::from_be_bytes(bits[..8].try_into().unwrap_or_default())
    }
}

impl fmt::Debug for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").field("name", &self.inner.options.name).finish_non_exhaustive()
    }
}
