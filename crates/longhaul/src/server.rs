//! A server: tools, a store, an endpoint.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use longhaul_engine::{Engine, EngineLimits, SystemRandom};
use longhaul_receiver::{Catalogue, Receiver, ReceiverOptions};
use longhaul_server::http::{self, Guard, HttpEndpoint};
use longhaul_server::{Anonymous, Identify, RateLimits, ServerLimits, Tokens, local, stdio};
use longhaul_store::{Store, StoreError};
use longhaul_wire::ticket::TicketNames;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::{Error, Prompt, Resource, ResourceTemplate, ServerHandle, Tool};

/// Open files that are kept for the store and everything else that is not a connection.
const SPARE_FILES_MIN: usize = 128;

/// An MCP server. [`start`](Self::start) starts it on a store.
#[derive(Debug, Default)]
pub struct Server {
    tools: Vec<Tool>,
    prompts: Option<Vec<Prompt>>,
    resources: Option<Vec<Resource>>,
    templates: Vec<ResourceTemplate>,
    handle: ServerHandle,
    options: ReceiverOptions,
    limits: ServerLimits,
    engine_limits: EngineLimits,
    identity: Option<Arc<dyn Identify>>,
    origins: Vec<String>,
}

impl Server {
    /// A server without tools. Clients see its name.
    pub fn new(name: impl Into<String>) -> Self {
        let options = ReceiverOptions { name: name.into(), ..ReceiverOptions::default() };
        Self { options, ..Self::default() }
    }

    /// Adds a tool.
    pub fn tool(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self
    }

    /// Adds several tools.
    pub fn tools(mut self, tools: impl IntoIterator<Item = Tool>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Adds a prompt.
    pub fn prompt(self, prompt: Prompt) -> Self {
        self.prompts([prompt])
    }

    /// Adds several prompts. With none of them the server says nevertheless that it has prompts: some can be added later by
    /// its [handle](Self::handle).
    pub fn prompts(mut self, prompts: impl IntoIterator<Item = Prompt>) -> Self {
        self.prompts.get_or_insert_default().extend(prompts);
        self
    }

    /// Adds a resource.
    pub fn resource(self, resource: Resource) -> Self {
        self.resources([resource])
    }

    /// Adds several resources. With none of them the server says nevertheless that it has resources: some can be added later
    /// by its [handle](Self::handle).
    pub fn resources(mut self, resources: impl IntoIterator<Item = Resource>) -> Self {
        self.resources.get_or_insert_default().extend(resources);
        self
    }

    /// Adds a resource template.
    pub fn resource_template(mut self, template: ResourceTemplate) -> Self {
        self.templates.push(template);
        self
    }

    /// Changes what the server offers while it runs. Tools may hold it.
    pub fn handle(&self) -> ServerHandle {
        self.handle.clone()
    }

    /// Whether there is anything that a client can call.
    pub fn has_tools(&self) -> bool {
        !self.tools.is_empty()
    }

    /// The version that clients see.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.options.version = version.into();
        self
    }

    /// Instructions for models on how to use this server.
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.options.instructions = Some(instructions.into());
        self
    }

    /// How many entries a page of a list has, at most. Default: 500.
    pub fn list_page_max(mut self, entries: usize) -> Self {
        self.options.list_page_max = entries;
        self
    }

    /// How often clients should poll a task.
    pub fn poll_interval_ms(mut self, poll_interval_ms: u64) -> Self {
        self.options.poll_interval_ms = poll_interval_ms;
        self
    }

    /// How long the call of a client that knows no tasks waits. Such a call of a tool that can run as a task is a durable task
    /// all the same; after this time the client gets a ticket, and its model asks for the result with ordinary tools
    /// (`task_status`, `task_result`). Keep it shorter than the time after which clients give up, which is 60 s for most.
    /// Default: 45 s.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.options.tickets.get_or_insert_default().patience = patience;
        self
    }

    /// How often a client that knows no tasks, and waits for a tool that reports no progress, gets a sign of life. It has to ask
    /// for progress. Default: 5 s.
    pub fn heartbeat(mut self, interval: Duration) -> Self {
        self.options.tickets.get_or_insert_default().heartbeat = interval;
        self
    }

    /// The names of the tools for clients that know no tasks. If a tool of yours has one of them, `longhaul_` is put before
    /// it.
    pub fn ticket_names(mut self, names: TicketNames) -> Self {
        self.options.tickets.get_or_insert_default().names = names;
        self
    }

    /// Offers no tickets: a call of a client that knows no tasks is not stored, waits for its result however long that
    /// takes, and ends with its client. The tools for tickets are not listed.
    pub fn no_tickets(mut self) -> Self {
        self.options.tickets = None;
        self
    }

    /// Who may call over HTTP, and as which owner: a [`TokenFile`](crate::TokenFile), or a type of your own. Without it only
    /// this machine can connect, and every caller is the same owner, `anonymous`: the ID of a task is the only key to it,
    /// tasks cannot be listed, and they are not kept for long.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use longhaul::{Server, TokenFile};
    ///
    /// let server = Server::new("library").identity(TokenFile::open("tokens")?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn identity(mut self, identity: impl Identify) -> Self {
        self.identity = Some(Arc::new(identity));
        self
    }

    /// Who may call, by tokens that do not change while the server runs.
    pub fn tokens(self, tokens: Tokens) -> Self {
        self.identity(tokens)
    }

    /// The longest time for which a task of an anonymous caller is kept, whatever its tool says. Default: one hour.
    pub fn anonymous_kept_ms_max(mut self, ms: u64) -> Self {
        self.options.anonymous_kept_ms_max = ms;
        self
    }

    /// The longest `ttl` that a client can ask for, of tools that keep their tasks from the end or without limit. Default:
    /// 30 days.
    pub fn ttl_ms_max(mut self, ms: u64) -> Self {
        self.options.ttl_ms_max = ms;
        self
    }

    /// The name that clients see.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.options.name = name.into();
        self
    }

    /// Allows calls from pages of this web origin.
    pub fn origin(mut self, origin: impl Into<String>) -> Self {
        self.origins.push(origin.into());
        self
    }

    /// Limits for clients: connections, sessions, message sizes, times.
    pub fn limits(mut self, limits: ServerLimits) -> Self {
        self.limits = limits;
        self
    }

    /// How many files and sockets this process may have open. The number of connections is reduced to fit, so that the
    /// store can always open its files; further connections wait to be accepted.
    pub fn open_files(mut self, open_files: u64) -> Self {
        let connections = usize::try_from(open_files).unwrap_or(usize::MAX).saturating_sub(SPARE_FILES_MIN).max(1);
        if connections < self.limits.connections_max {
            tracing::warn!(open_files, connections, "the limit of open files reduces the number of connections");
            self.limits.connections_max = connections;
        }
        self
    }

    /// How many requests one owner may make in a second.
    pub fn rate_limits(mut self, limits: RateLimits) -> Self {
        self.options.rates = limits;
        self
    }

    /// Limits of the engine: open tasks per owner, times.
    pub fn engine_limits(mut self, limits: EngineLimits) -> Self {
        self.engine_limits = limits;
        self
    }

    /// Starts the engine on a store. Tasks of a process that died are recovered before this returns. The store is closed
    /// when the server ends, or if it does not start.
    pub async fn start(self, store: Arc<dyn Store>) -> Result<RunningServer, Error> {
        let started = self.start_on(Arc::clone(&store)).await;
        if started.is_err() {
            store.close().await;
        }
        started
    }

    async fn start_on(self, store: Arc<dyn Store>) -> Result<RunningServer, Error> {
        // Before the engine starts: a lost attempt may run again at once.
        #[cfg(feature = "command")]
        if let Err(error) = crate::command::end_leftovers().await {
            tracing::warn!(%error, "processes that a dead server left behind cannot be looked for");
        }
        let mut catalogue = Catalogue::default();
        if self.prompts.is_some() {
            catalogue.offer_prompts();
        }
        if self.resources.is_some() {
            catalogue.offer_resources();
        }
        let tools = self.tools.into_iter().map(|tool| Ok(tool.entry()?));
        let prompts = self.prompts.into_iter().flatten().map(|prompt| Ok(prompt.split()?));
        let resources = self.resources.into_iter().flatten().map(|resource| Ok(resource.split()?));
        let templates = self.templates.into_iter().map(|template| Ok(template.split()?));
        let mut engine_tools = Vec::new();
        for declared in tools.chain(prompts).chain(resources).chain(templates) {
            let (entry, tools): (_, Vec<_>) = declared.map_err(|error: Error| error)?;
            catalogue.add(entry)?;
            engine_tools.extend(tools);
        }
        let engine = Engine::start(store, engine_tools, self.engine_limits, Arc::new(SystemRandom)).await?;
        let options = ReceiverOptions { sessions: self.limits.session.clone(), ..self.options };
        let receiver = Receiver::new(engine, catalogue, options).await?;
        self.handle.set(&receiver);
        let (limits, identity, origins) = (self.limits, self.identity, self.origins);
        let stop = CancellationToken::new();
        let pipes = PipeServer {
            receiver: receiver.clone(),
            limits: limits.clone(),
            stop: stop.clone(),
            connected: watch::Sender::new(0),
            ends_with_last: Arc::default(),
        };
        Ok(RunningServer { receiver, limits, identity, origins, stop, before_close: BeforeClose::default(), pipes })
    }
}

/// A server that runs its tasks and has no connections yet.
#[derive(Debug)]
pub struct RunningServer {
    receiver: Receiver,
    limits: ServerLimits,
    identity: Option<Arc<dyn Identify>>,
    origins: Vec<String>,
    stop: CancellationToken,
    before_close: BeforeClose,
    pipes: PipeServer,
}

/// Serves clients on pipes or sockets of this machine. Their tasks belong to the owner `local`, so let only the user of this
/// process connect.
#[derive(Debug, Clone)]
pub struct PipeServer {
    receiver: Receiver,
    limits: ServerLimits,
    stop: CancellationToken,
    connected: watch::Sender<usize>,
    /// Set for a server that has no other clients.
    ends_with_last: Arc<AtomicBool>,
}

impl PipeServer {
    /// Serves one client until the end of its input, or until the server stops.
    pub async fn serve(
        &self,
        input: impl AsyncRead + Unpin,
        output: impl AsyncWrite + Unpin + Send + 'static,
    ) -> std::io::Result<()> {
        self.connected.send_modify(|count| *count += 1);
        let _leaves = Leaves(&self.connected);
        let input = tokio::io::BufReader::new(input);
        let is_last = || *self.connected.borrow() == 1;
        let (receiver, limits, stop) = (self.receiver.clone(), self.limits.clone(), self.stop.clone());
        stdio::serve_one(receiver, local(), input, output, limits, stop, || self.closes_with_last() && is_last()).await
    }

    /// Whether the server ends with its last client on a pipe.
    fn closes_with_last(&self) -> bool {
        self.ends_with_last.load(Ordering::Relaxed)
    }

    async fn all_left(&self) {
        // It fails only if the sender is gone, and this is one.
        let _ = self.connected.subscribe().wait_for(|count| *count == 0).await;
    }
}

/// Counts a client out, also if its future is dropped.
struct Leaves<'a>(&'a watch::Sender<usize>);

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

/// Work to do before the store is closed.
#[derive(Default)]
struct BeforeClose(Vec<Box<dyn FnOnce() + Send>>);

impl fmt::Debug for BeforeClose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BeforeClose").field("steps", &self.0.len()).finish()
    }
}

impl RunningServer {
    /// Listens for HTTP. Without [`Server::identity`] the address must be a loopback address.
    pub async fn listen(self, address: SocketAddr) -> Result<HttpServer, Error> {
        match self.bind(address).await {
            Ok((listener, address)) => Ok(HttpServer { started: self, listener, address }),
            Err(error) => end(&self.receiver, self.before_close, Err(error)).await,
        }
    }

    async fn bind(&self, address: SocketAddr) -> Result<(TcpListener, SocketAddr), Error> {
        if self.identity.is_none() && !address.ip().is_loopback() {
            return Err(Error::Open(address));
        }
        let failed = |error| Error::Listen(address, error);
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok((listener, address))
    }

    /// Serves one client over standard input and output until the end of input. Its tasks belong to the owner `local`: the
    /// client has started this process.
    pub async fn serve_stdio(self) -> Result<(), Error> {
        self.serve_pipe(tokio::io::stdin(), tokio::io::stdout()).await
    }

    /// Like [`serve_stdio`](Self::serve_stdio), over other streams. If [further clients](Self::pipes) are connected when this
    /// one ends, they are served until they have left.
    pub async fn serve_pipe(
        self,
        input: impl AsyncRead + Unpin,
        output: impl AsyncWrite + Unpin + Send + 'static,
    ) -> Result<(), Error> {
        let pipes = self.pipes();
        pipes.ends_with_last.store(true, Ordering::Relaxed);
        let _draining = drain_on_stop(self.stop.clone(), self.receiver.clone());
        let clients = async {
            let served = pipes.serve(input, output).await;
            tokio::select! {
                () = pipes.all_left() => {}
                () = self.stop.cancelled() => {}
            }
            self.receiver.close();
            self.receiver.finished().await;
            served.map_err(Error::Stdio)
        };
        let ended = tokio::select! {
            ended = clients => ended,
            stopped = stopped(&self.receiver) => Err(stopped),
        };
        end(&self.receiver, self.before_close, ended).await
    }

    /// A handle for clients on pipes or sockets of this machine, beside those that the server has otherwise.
    pub fn pipes(&self) -> PipeServer {
        self.pipes.clone()
    }

    /// Runs this when the server stops, after the last task has stopped and before the store is closed, while no other
    /// process can open it.
    pub fn before_close(&mut self, work: impl FnOnce() + Send + 'static) {
        self.before_close.0.push(Box::new(work));
    }

    /// Cancel this token to stop the server.
    pub fn stop_handle(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// The receiver, for a transport of your own.
    pub fn receiver(&self) -> &Receiver {
        &self.receiver
    }
}

/// A server that listens on an address.
#[derive(Debug)]
pub struct HttpServer {
    started: RunningServer,
    listener: TcpListener,
    address: SocketAddr,
}

impl HttpServer {
    /// The address, with the port that the system chose if it was 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Cancel this token to stop the server.
    pub fn stop_handle(&self) -> CancellationToken {
        self.started.stop_handle()
    }

    /// The receiver.
    pub fn receiver(&self) -> &Receiver {
        &self.started.receiver
    }

    /// Serves until this future ends, such as `tokio::signal::ctrl_c()`, and then stops like [`serve`](Self::serve).
    pub async fn serve_until(self, end: impl Future + Send + 'static) -> Result<(), Error> {
        let stop = self.stop_handle();
        let waiting = tokio::spawn(async move {
            end.await;
            stop.cancel();
        });
        let ended = self.serve().await;
        waiting.abort();
        ended
    }

    /// Serves until it is stopped by [`stop_handle`](Self::stop_handle). Then it lets requests and tools finish, within
    /// limits, and closes the store.
    pub async fn serve(self) -> Result<(), Error> {
        let RunningServer { receiver, limits, identity, origins, stop, before_close, pipes: _ } = self.started;
        let guard = Guard { loopback_only: identity.is_none(), origins };
        let identity = identity.unwrap_or_else(|| Arc::new(Anonymous::default()));
        let keeping_up = tokio::spawn(Arc::clone(&identity).keep_up());
        let endpoint = HttpEndpoint::new(receiver.clone(), identity, guard, limits.clone());
        let (tidying, tidied_until) = (receiver.clone(), stop.clone());
        tokio::spawn(async move { tidying.tidy_until(tidied_until).await });
        let _draining = drain_on_stop(stop.clone(), receiver.clone());
        let ended = tokio::select! {
            () = http::serve(self.listener, endpoint, stop) => Ok(()),
            stopped = stopped(&receiver) => Err(stopped),
        };
        keeping_up.abort();
        receiver.end_sessions().await;
        end(&receiver, before_close, ended).await
    }
}

/// Drains the engine and closes the receiver as soon as `stop` is cancelled. A task that began later would not have its full
/// time.
fn drain_on_stop(stop: CancellationToken, receiver: Receiver) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(async move {
        stop.cancelled().await;
        receiver.engine().drain();
        receiver.close();
    }))
}

/// Ends everything below the connections. Returns why the server had to stop, or else what could not be stored.
async fn end<T>(receiver: &Receiver, before_close: BeforeClose, ended: Result<T, Error>) -> Result<T, Error> {
    // Every connection is closed, so no answer to a question can come.
    receiver.engine().give_up_waiting_tasks().await;
    let tasks = receiver.engine().shut_down().await;
    // Without its files the store cannot be closed well, even if nothing was written since they were lost.
    let checked = receiver.engine().store().check().await;
    for work in before_close.0 {
        work();
    }
    receiver.engine().store().close().await;
    match (ended, checked) {
        (Ok(_), Err(StoreError::Stopped(reason))) => Err(Error::Stopped(reason)),
        (Ok(_), _) if tasks > 0 => Err(Error::ResultsLost { tasks }),
        (ended, _) => ended,
    }
}

/// A server stops when its store has stopped, because nothing can be stored any more.
async fn stopped(receiver: &Receiver) -> Error {
    Error::Stopped(receiver.engine().store().stopped().await)
}
