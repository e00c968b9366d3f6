//! `longhaul serve`

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use longhaul::{Owner, Server, StoreUrl, Tokens};
use longhaul_store::Store;
use rand::RngExt;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::exit::{self, Failed};
use crate::log::{self, LogFormat};
use crate::store::StoreArgument;
use crate::{demo, operator};

/// How long threads may take to end once everything is stored and said.
const THREADS_TIME_MAX: Duration = Duration::from_millis(500);

/// A store, or why there is none.
pub type OpenedStore = Result<Arc<dyn Store>, longhaul::Error>;

/// Run the server
#[derive(Debug, Args)]
#[command(after_help = exit::HELP)]
pub struct Serve {
    /// The address to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8377")]
    listen: SocketAddr,

    /// Serve one client over standard input and output instead
    #[arg(long, conflicts_with = "token_file")]
    stdio: bool,

    #[command(flatten)]
    store: StoreArgument,

    /// Let in only who has a token; made with a first token if it does not exist. Without it, only this machine can
    /// connect
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// A web origin that may call, beside the server's own
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,

    /// Add a few tools that show what it can do, `generate_report` first
    #[arg(long)]
    demo: bool,

    /// How log lines look
    #[arg(long, value_enum, default_value_t)]
    log_format: LogFormat,
}

impl Serve {
    /// Serves these tools until the process is told to stop.
    pub fn run(self, server: Server) -> Result<(), Failed> {
        self.run_on(server, StoreUrl::open)
    }

    /// The same, on a store that is opened in the caller's own way.
    pub fn run_on(self, server: Server, open: impl FnOnce(&StoreUrl) -> OpenedStore) -> Result<(), Failed> {
        log::start(self.log_format);
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failed::System("cannot start the runtime", error))?;
        let ended = runtime.block_on(self.serve(server, open));
        // A thread that reads standard input comes back only when the client says something.
        runtime.shutdown_timeout(THREADS_TIME_MAX);
        ended
    }

    async fn serve(self, mut server: Server, open: impl FnOnce(&StoreUrl) -> OpenedStore) -> Result<(), Failed> {
        if !self.stdio && self.token_file.is_none() && !self.listen.ip().is_loopback() {
            // Said before the store is touched: nothing is recovered for a server that will not run.
            return Err(longhaul::Error::Open(self.listen).into());
        }
        let url = self.store.url()?;
        if self.demo {
            server = server.tools(demo::tools()).instructions(demo::INSTRUCTIONS);
        }
        if let Some(path) = &self.token_file {
            server = server.tokens(read_tokens(path)?);
        }
        for origin in self.allow_origin {
            server = server.origin(origin);
        }
        let started = server.start(open(&url)?).await?;
        if let StoreUrl::Sqlite(path) = &url {
            operator::listen(path, started.receiver().engine().clone());
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
    eprintln!("Longhaul {} is listening on http://{address}/mcp", env!("CARGO_PKG_VERSION"));
    eprintln!("  tasks are kept in {url}");
    match token_file {
        Some(path) => eprintln!("  callers need a token of {}", path.display()),
        None => eprintln!("  there is no token file, so only this machine can connect"),
    }
}

/// The tokens of a file. A file that is not there yet is made, with one token that is shown once.
fn read_tokens(path: &Path) -> Result<Tokens, Failed> {
    let failed = |cause: String| Failed::Tokens { path: path.display().to_string(), cause };
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            first_token(path).map_err(|error| failed(error.to_string()))?
        }
        Err(error) => return Err(failed(error.to_string())),
    };
    let tokens = Tokens::parse(&text).map_err(|error| failed(error.to_string()))?;
    if tokens.is_empty() {
        return Err(failed("it has no tokens; remove it to have one made".into()));
    }
    Ok(tokens)
}

fn first_token(path: &Path) -> std::io::Result<String> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;

    let token = format!("{:032x}{:032x}", rand::rng().random::<u128>(), rand::rng().random::<u128>());
    let owner = Owner::parse("owner").map_err(std::io::Error::other)?;
    let text = format!("# OWNER SHA256-OF-TOKEN, one a line\n{}\n", Tokens::line(&owner, &token));
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    eprintln!("{} is new. Its token is shown this once; only its hash is kept:\n  {token}", path.display());
    Ok(text)
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
            eprintln!("Stopping: letting what is under way finish. Once more to stop at once.");
            stop.cancel();
        }
    });
    Ok(())
}
