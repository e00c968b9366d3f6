//! `longhaul serve`

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use longhaul::{EngineLimits, Server, StoreUrl};
use longhaul_store::{OpenError, Store};
use tokio::net::TcpSocket;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::audit::Audit;
use crate::exit::{self, Failed};
use crate::log::{self, LogFormat};
use crate::say::tell;
use crate::store::StoreArgument;
use crate::{demo, descriptors, operator, token};

/// How long threads may take to end once everything is stored and said.
const THREADS_TIME_MAX: Duration = Duration::from_millis(500);

/// A store, or why it cannot be opened.
pub type OpenedStore = Result<Arc<dyn Store>, OpenError>;

/// What a signal means, as the help shows it.
fn help() -> String {
    let drain = EngineLimits::default().drain_ms / 1_000;
    format!(
        "\
Stopping:
  Ctrl-C or SIGTERM takes nothing new, gives running tools {drain} s to end, and closes the store: then its one file is all
  of it. A task that has not ended by then fails or is started again by the next server, as its tool says. Queued tasks
  stay queued. A second signal stops at once. With --stdio, the end of input is such a signal, too.

{}",
        exit::HELP
    )
}

/// Run the server
#[derive(Debug, Args)]
#[command(after_help = help())]
pub struct Serve {
    /// The address to listen on: HOST:PORT
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8377", value_parser = address)]
    listen: SocketAddr,

    /// Serve one client over standard input and output instead
    #[arg(long, conflicts_with = "token_file")]
    stdio: bool,

    #[command(flatten)]
    store: StoreArgument,

    /// Let in only who has a token of this file, which is followed while the server runs; made with a first token if it
    /// does not exist. Without it, only this machine can connect
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// A web origin that may call, beside the server's own
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,

    /// Add a few tools that show what it can do, `generate_report` first
    #[arg(long)]
    demo: bool,

    /// Append what is done with tasks, by whom, and what is refused to this file, as lines of JSON; `-` is standard error
    #[arg(long, value_name = "FILE")]
    audit: Option<PathBuf>,

    /// How log lines look
    #[arg(long, value_enum, default_value_t)]
    log_format: LogFormat,
}

impl Serve {
    /// Serves these tools until the process is told to stop.
    pub fn run(self, server: Server) -> Result<(), Failed> {
        self.run_on(server, StoreUrl::open)
    }

    /// The same on a store that the caller opens.
    pub fn run_on(self, server: Server, open: impl AsyncFnOnce(&StoreUrl) -> OpenedStore) -> Result<(), Failed> {
        let audit = self
            .audit
            .as_deref()
            .map(|path| Audit::open(path).map_err(|cause| Failed::Audit { path: path.display().to_string(), cause }));
        log::start(self.log_format, audit.transpose()?);
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failed::System("cannot start the runtime", error))?;
        let ended = runtime.block_on(self.serve(server, open));
        // A thread that reads standard input comes back only when the client says something.
        runtime.shutdown_timeout(THREADS_TIME_MAX);
        ended
    }

    async fn serve(self, mut server: Server, open: impl AsyncFnOnce(&StoreUrl) -> OpenedStore) -> Result<(), Failed> {
        if !self.stdio && self.token_file.is_none() && !self.listen.ip().is_loopback() {
            // Said before the store is touched: nothing is recovered for a server that will not run.
            return Err(Failed::TokenNeeded(self.listen));
        }
        if !self.stdio {
            // The same. Somebody may still be quicker than we are.
            is_free(self.listen).map_err(|error| longhaul::Error::Listen(self.listen, error))?;
        }
        let url = self.store.url().await?;
        if self.demo {
            server = server.tools(demo::tools()).instructions(demo::INSTRUCTIONS);
        }
        if let Some(path) = &self.token_file {
            server = server.identity(token::open(path)?);
        }
        for origin in self.allow_origin {
            server = server.origin(origin);
        }
        let store = open(&url).await?;
        if !self.stdio
            && let Some(open_files) = descriptors::raise()
        {
            server = server.open_files(open_files);
        }
        let mut started = server.start(store).await?;
        if let Some(file) = url.file()
            && let Some(socket) = operator::listen(file, started.receiver().engine().clone())
        {
            started.before_close(move || drop(socket));
        }
        stop_on_signal(started.stop_handle())?;
        if self.stdio {
            return Ok(started.serve_stdio().await?);
        }
        let listening = started.listen(self.listen).await?;
        greet(listening.address(), &url, self.token_file.as_deref());
        Ok(listening.serve().await?)
    }
}

fn greet(address: SocketAddr, url: &StoreUrl, token_file: Option<&Path>) {
    tell!("Longhaul {} is listening on http://{address}/mcp", env!("CARGO_PKG_VERSION"));
    tell!("  tasks are kept in {url}");
    if let Some(path) = token_file {
        tell!("  callers need a token of {}", path.display());
    } else {
        tell!("  there is no token file, so only this machine can connect");
    }
}

/// Whether nobody listens there. It is not listened on yet: a client that came now would be turned away.
fn is_free(address: SocketAddr) -> std::io::Result<()> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)
}

/// `HOST:PORT`, where the host may be a name. Of several addresses, one of IPv4: `localhost` has both, and not every
/// client tries both.
fn address(text: &str) -> Result<SocketAddr, String> {
    let resolved = text.to_socket_addrs().map(|found| found.min_by_key(SocketAddr::is_ipv6));
    match resolved {
        Ok(Some(address)) => Ok(address),
        _ => Err("it must be HOST:PORT, such as 127.0.0.1:8377 or localhost:8377".into()),
    }
}

/// The first signal asks for a graceful end, the second does not ask.
fn stop_on_signal(stop: CancellationToken) -> Result<(), Failed> {
    let cannot = |error| Failed::System("cannot listen for signals", error);
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
            tell!("Stopping: letting what is under way finish. Once more to stop at once.");
            stop.cancel();
        }
    });
    Ok(())
}
