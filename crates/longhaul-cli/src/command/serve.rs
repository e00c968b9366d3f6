//! `longhaul serve`

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use longhaul::{EngineLimits, RunningServer, Server, StoreUrl};
use longhaul_store::{OpenError, Store};
use tokio::net::TcpSocket;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::audit::Audit;
use crate::command::guard;
use crate::config::follow::ConfigFollower;
use crate::config::prompt::PromptConfig;
use crate::config::resource::ResourceConfig;
use crate::config::unit::duration;
use crate::config::{self, Config, command_tool};
use crate::exit::{self, CommandError};
use crate::log::{self, LogFormat};
use crate::output::stderr_line;
use crate::relay::{self, RelayedClient};
use crate::store::StoreArgument;
use crate::{demo, descriptors, operator, token};

/// How long the process waits for its threads to end, once everything is stored and answered.
const THREADS_TIME_MAX: Duration = Duration::from_millis(500);

/// Size in bytes of the buffer between a client that was passed on before and the server that this process has become.
const RELAY_BUFFER_BYTES: usize = 64 << 10;

/// How long calls of clients that know no tasks wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Patience {
    Time(Duration),
    /// Their calls do not become tasks.
    Off,
}

fn patience(text: &str) -> Result<Patience, String> {
    match text {
        "off" => Ok(Patience::Off),
        _ => duration(text).map(Patience::Time).map_err(|_| "it must be a time, such as 30s or 2m, or `off`".into()),
    }
}

/// A store, or why it cannot be opened.
pub type OpenedStore = Result<Arc<dyn Store>, OpenError>;

/// The end of the help: what a signal does, and the exit codes.
fn help() -> String {
    let drain = EngineLimits::default().drain_ms / 1_000;
    format!(
        "\
Stopping:
  After Ctrl-C or SIGTERM the server accepts nothing new, gives running tools {drain} s to end, and closes the store, which is
  then one file. A task that has not ended by then fails or runs again on the next server, as its tool says. Queued tasks
  stay queued. A second signal stops at once. With --stdio, the end of input has the same effect.

{}",
        exit::HELP
    )
}

/// Run the server
#[derive(Debug, Args)]
#[command(after_help = help())]
pub struct Serve {
    /// The address to listen on: HOST:PORT
    /// [default: 127.0.0.1:8377]
    #[arg(long, value_name = "ADDR", env = "LONGHAUL_LISTEN", value_parser = address)]
    listen: Option<SocketAddr>,

    /// Serve the tools of this file, and take from it what other flags do not say
    #[arg(long, value_name = "FILE", env = "LONGHAUL_CONFIG")]
    config: Option<PathBuf>,

    /// Serve one client over standard input and output instead
    #[arg(long, conflicts_with = "token_file")]
    stdio: bool,

    #[command(flatten)]
    store: StoreArgument,

    /// Accept only callers with a token of this file. Changes to it take effect while the server runs. If it does not exist, it
    /// is created with a first token. Without this option, only this machine can connect
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// Allow calls from pages of this web origin, in addition to the server's own
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,

    /// Add demo tools, `generate_report` first
    #[arg(long)]
    demo: bool,

    /// How long a call of a client that knows no tasks waits before the client gets a ticket for the task, such as 30s. `off`:
    /// such calls become no tasks [default: 45s]
    #[arg(long, value_name = "TIME", value_parser = patience)]
    patience: Option<Patience>,

    /// Append an audit log to this file, as lines of JSON: who did what with which task, and what was refused. `-` is standard
    /// error
    #[arg(long, value_name = "FILE")]
    audit: Option<PathBuf>,

    /// The format of log lines [default: text]
    #[arg(long, value_enum)]
    log_format: Option<LogFormat>,

    /// Whether this program has the command `guard`.
    #[arg(skip)]
    has_guard: bool,
}

impl Serve {
    /// Lets the server start a guard: this program has the command `guard`.
    pub(super) fn guarded(self) -> Self {
        Self { has_guard: true, ..self }
    }

    /// Serves these tools until a signal stops the process.
    pub fn run(self, server: Server) -> Result<(), CommandError> {
        self.run_with(server, async |url: &StoreUrl, config: &Config| url.open_with(config.limits.store.clone()).await)
    }

    /// The same on a store that the caller opens.
    pub fn run_on(self, server: Server, open: &impl AsyncFn(&StoreUrl) -> OpenedStore) -> Result<(), CommandError> {
        self.run_with(server, async |url: &StoreUrl, _: &Config| open(url).await)
    }

    fn run_with(
        mut self,
        server: Server,
        open: impl AsyncFn(&StoreUrl, &Config) -> OpenedStore,
    ) -> Result<(), CommandError> {
        let (mut config, missing) = self.config.as_deref().map(config::check).transpose()?.unwrap_or_default();
        let settings = ConfigFollower::settings(&config);
        self.merge_config(&mut config);
        let audit = self.audit.as_deref().map(|path| {
            Audit::open(path).map_err(|cause| CommandError::Audit { path: path.display().to_string(), cause })
        });
        log::start(self.log_format.unwrap_or_default(), audit.transpose()?);
        for problem in missing {
            tracing::warn!("the config file names something that this machine does not have: {problem}");
        }
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(|error| CommandError::System("cannot start the runtime", error))?;
        let ended = runtime.block_on(self.serve(server, config, settings, open));
        // A thread that reads standard input ends only when the client sends something.
        runtime.shutdown_timeout(THREADS_TIME_MAX);
        ended
    }

    /// Combines the options of the command line with those of the config file. Where both set a value, that of the command line
    /// is used.
    fn merge_config(&mut self, config: &mut Config) {
        let file = &mut config.server;
        self.stdio |= file.stdio;
        self.demo |= file.demo;
        self.listen = self.listen.or(file.listen);
        self.log_format = self.log_format.or(file.log_format);
        self.audit = self.audit.take().or(file.audit.take());
        // A client on standard input needs no token, even if the config file names a token file for HTTP.
        self.token_file = self.token_file.take().or(file.token_file.take()).filter(|_| !self.stdio);
        self.allow_origin.append(&mut file.allow_origin);
        match self.patience {
            Some(Patience::Off) => config.clients_without_tasks.enabled = Some(false),
            Some(Patience::Time(time)) => {
                config.clients_without_tasks.enabled = Some(true);
                config.clients_without_tasks.patience = Some(time);
            }
            None => {}
        }
    }

    async fn serve(
        self,
        server: Server,
        config: Config,
        settings: String,
        open: impl AsyncFn(&StoreUrl, &Config) -> OpenedStore,
    ) -> Result<(), CommandError> {
        // Before the store is opened: no task is recovered for a server that will not run.
        self.check_address()?;
        let url = self.store.url(config.server.store.as_ref()).await?;
        let mut server = self.configure(server, &config)?;
        let Some((store, relayed)) = self.open_store(&url, &config, open).await? else { return Ok(()) };
        if !self.stdio
            && let Some(open_files) = descriptors::raise()
        {
            server = server.open_files(open_files);
        }
        let _guard = (self.has_guard && self.config.is_some()).then(guard::start).flatten();
        let has_tools = server.has_tools();
        let handle = server.handle();
        let mut started = server.start(store).await?;
        if let Some(path) = &self.config
            && let Some(follower) = ConfigFollower::new(path, &config, settings, handle)
        {
            let following = tokio::spawn(follower.follow());
            started.before_close(move || following.abort());
        }
        if !has_tools {
            tracing::warn!(
                "this server has no tools, so clients cannot call anything; --config FILE adds some, and --demo some to try"
            );
        }
        if let Some(file) = url.file() {
            open_sockets(&mut started, file);
        }
        stop_on_signal(started.stop_handle())?;
        if let Some(client) = relayed {
            return serve_relayed(started, client).await;
        }
        if self.stdio {
            return Ok(started.serve_stdio().await?);
        }
        let listening = started.listen(self.address()).await?;
        greet(listening.address(), &url, self.token_file.as_deref());
        Ok(listening.serve().await?)
    }

    /// Opens the store. If another process uses it, passes the client on standard input on to that process until the store can
    /// be opened. Returns `None` if the client leaves before that.
    async fn open_store(
        &self,
        url: &StoreUrl,
        config: &Config,
        open: impl AsyncFn(&StoreUrl, &Config) -> OpenedStore,
    ) -> Result<Option<(Arc<dyn Store>, Option<RelayedClient>)>, CommandError> {
        match (open(url, config).await, url.file()) {
            (Err(OpenError::InUse { .. }), Some(file)) if self.stdio => {
                let mut client = RelayedClient::on_stdio(&config.limits.server);
                let store = client.pass_on(file, async || open(url, config).await).await?;
                Ok(store.map(|store| (store, Some(client))))
            }
            (opened, _) => Ok(Some((opened?, None))),
        }
    }

    fn address(&self) -> SocketAddr {
        self.listen.unwrap_or_else(default_address)
    }

    /// Refuses an address that other machines can reach if there is no token file, and one that is in use. Another process may
    /// still take a free address before this one does.
    fn check_address(&self) -> Result<(), CommandError> {
        let address = self.address();
        if self.stdio {
            return Ok(());
        }
        if self.token_file.is_none() && !address.ip().is_loopback() {
            return Err(CommandError::TokenNeeded(address));
        }
        Ok(is_free(address).map_err(|error| longhaul::Error::Listen(address, error))?)
    }

    /// Applies the config file and the flags to the server.
    fn configure(&self, server: Server, config: &Config) -> Result<Server, CommandError> {
        let mut server = apply_config(server, config, self.config.is_some());
        if self.demo {
            server = server.tools(demo::tools()).instructions(demo::INSTRUCTIONS);
        }
        if let Some(path) = &self.token_file {
            server = server.identity(token::open(path)?);
        }
        Ok(self.allow_origin.iter().fold(server, Server::origin))
    }
}

/// Opens the sockets beside the store's file: that of the operator and that for clients of other processes.
fn open_sockets(started: &mut RunningServer, store: &Path) {
    let operator_socket = operator::listen(store, started.receiver().engine().clone());
    let relay_socket = relay::listen(store, started.pipes(), started.stop_handle());
    for socket in [operator_socket, relay_socket].into_iter().flatten() {
        started.before_close(move || drop(socket));
    }
}

/// Serves a client whose messages this process passed on to another server before it could open the store.
async fn serve_relayed(started: RunningServer, client: RelayedClient) -> Result<(), CommandError> {
    let (near, far) = tokio::io::duplex(RELAY_BUFFER_BYTES);
    let passing_on = tokio::spawn(client.serve(near));
    let (read, write) = tokio::io::split(far);
    started.serve_pipe(read, write).await?;
    passing_on.await.unwrap_or(Ok(()))
}

/// Applies the settings of the config file, and adds its tools, prompts and resources. A file that is followed can add
/// prompts and resources later, so the server declares both features even if it has none yet.
fn apply_config(mut server: Server, config: &Config, follows_file: bool) -> Server {
    let (file, limits) = (&config.server, &config.limits);
    if let Some(name) = &file.name {
        server = server.name(name);
    }
    if let Some(version) = &file.version {
        server = server.version(version);
    }
    if let Some(instructions) = &file.instructions {
        server = server.instructions(instructions);
    }
    if let Some(interval) = file.poll_interval {
        server = server.poll_interval_ms(u64::try_from(interval.as_millis()).unwrap_or(u64::MAX));
    }
    if limits.is_set {
        server =
            server.limits(limits.server.clone()).rate_limits(limits.rates.clone()).engine_limits(limits.engine.clone());
        if let Some(ms) = limits.receiver.ttl_ms_max {
            server = server.ttl_ms_max(ms);
        }
        if let Some(ms) = limits.receiver.anonymous_kept_ms_max {
            server = server.anonymous_kept_ms_max(ms);
        }
        if let Some(entries) = limits.receiver.list_page_max {
            server = server.list_page_max(entries);
        }
    }
    server = config.clients_without_tasks.configure(server);
    if follows_file || !config.prompts.is_empty() {
        server = server.prompts(config.prompts.iter().map(PromptConfig::prompt));
    }
    if follows_file || !config.resources.is_empty() {
        server = server.resources(config.resources.iter().map(ResourceConfig::resource));
    }
    server.tools(config.tools.iter().map(|tool| command_tool::tool(tool.clone(), limits)))
}

/// The address that a server listens on by default.
pub(crate) fn default_address() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 8377))
}

fn greet(address: SocketAddr, url: &StoreUrl, token_file: Option<&Path>) {
    stderr_line!("Longhaul {} is listening on http://{address}/mcp", env!("CARGO_PKG_VERSION"));
    stderr_line!("  tasks are kept in {url}");
    if let Some(path) = token_file {
        stderr_line!("  callers need a token of {}", path.display());
    } else {
        stderr_line!("  there is no token file, so only this machine can connect");
    }
}

/// Checks that the address is free. The socket does not listen yet, because the server cannot serve clients before its store
/// is open.
fn is_free(address: SocketAddr) -> std::io::Result<()> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)
}

/// `HOST:PORT`, where the host may be a name. IPv4 is preferred: `localhost` has addresses of both kinds, and not every
/// client tries both.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    let resolved = text.to_socket_addrs().map(|found| found.min_by_key(SocketAddr::is_ipv6));
    match resolved {
        Ok(Some(address)) => Ok(address),
        _ => Err("it must be HOST:PORT, such as 127.0.0.1:8377 or localhost:8377".into()),
    }
}

/// The first signal stops the server gracefully, the second at once.
fn stop_on_signal(stop: CancellationToken) -> Result<(), CommandError> {
    let cannot = |error| CommandError::System("cannot listen for signals", error);
    let mut interrupt = signal(SignalKind::interrupt()).map_err(cannot)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(cannot)?;
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if stop.is_cancelled() {
                std::process::exit(1);
            }
            stderr_line!("Stopping: requests and tools may finish. A second signal stops at once.");
            stop.cancel();
        }
    });
    Ok(())
}
