//! A server with the tools, prompts and resources that the conformance suite and the cross-implementation tests use.
//!
//! `cargo run --release --example conformance -- --listen 127.0.0.1:8377 --store memory:`, and the other flags of
//! `longhaul serve`.

mod asks;
mod content;
mod crash_jobs;
mod input_required;
mod jobs;
mod prompts;
mod protocol;
mod resources;

use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use longhaul::{RateLimits, Server, StoreUrl};
use longhaul_cli::command::serve::{OpenedStore, Serve};
use longhaul_cli::exit;
use longhaul_store::SystemClock;
use longhaul_store_sqlite::{SqliteOptions, Synchronous};

/// What is measured here is measured with the program's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    serve: Serve,
    /// Acknowledge what is not on the disk, so that a test can show that it would notice
    #[arg(long, hide = true)]
    unsafe_no_fsync: bool,
    /// Let one owner ask so often in a second, so that a benchmark measures something else than the limit
    #[arg(long, hide = true, value_name = "REQUESTS")]
    rate_limit: Option<u32>,
    /// Start the jobs that are started again so often at most
    #[arg(long, hide = true, default_value_t = crash_jobs::ATTEMPTS_MAX)]
    attempts_max: u32,
    /// Let them wait so long before their second attempt
    #[arg(long, hide = true, default_value_t = crash_jobs::BACKOFF_MS)]
    backoff_ms: u64,
}

fn main() -> ExitCode {
    let Arguments { serve, unsafe_no_fsync, rate_limit, attempts_max, backoff_ms } = Arguments::parse();
    // The suite calls the first tool of the list without arguments, so that one must be an ordinary one.
    let tools = protocol::greeting()
        .into_iter()
        .chain(jobs::tools())
        .chain(crash_jobs::tools(attempts_max, backoff_ms))
        .chain(content::tools())
        .chain(asks::tools())
        .chain(input_required::tools())
        .chain(protocol::tools());
    let server = Server::new("longhaul-conformance").tools(tools).poll_interval_ms(100);
    let mut server = resources::offer(prompts::offer(server));
    if let Some(requests) = rate_limit {
        eprintln!("One owner may make {requests} requests of each kind in a second: far more than by default.");
        server = server.rate_limits(RateLimits::all(requests));
    }
    exit::report(if unsafe_no_fsync { serve.run_on(server, &open_without_fsync) } else { serve.run(server) })
}

async fn open_without_fsync(url: &StoreUrl) -> OpenedStore {
    match url {
        StoreUrl::Sqlite(path) => {
            let mut options = SqliteOptions::default();
            options.synchronous = Synchronous::Off;
            Ok(Arc::new(longhaul_store_sqlite::open(path, &options, SystemClock)?))
        }
        _ => url.open().await,
    }
}
