//! The ceilings of the benchmark: the rates that a program without Longhaul's features reaches on this machine.
//!
//! - `ceiling bare` parses the JSON-RPC envelope and sends a constant response: the ceiling for reads.
//! - `ceiling sqlite --path FILE` stores tasks with rusqlite alone, through one writer that commits in groups: the
//!   ceiling for durable creation and completion.
//!
//! Both serve `POST /mcp` with axum and share the modules [`envelope`] and [`answer`].

mod answer;
mod bare;
mod envelope;
mod sqlite;

use std::{net::SocketAddr, path::PathBuf};

use axum::{Router, serve::ListenerExt};
use clap::{Parser, Subcommand};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// The same allocator as Longhaul's, so that the benchmark does not compare allocators.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
#[command(about = "The ceilings of the benchmark")]
struct Cli {
    #[command(subcommand)]
    mode: Mode,
    /// Address to listen on; port 0 selects a free port.
    #[arg(long, global = true, default_value = "127.0.0.1:8380")]
    listen: SocketAddr,
}

#[derive(Subcommand)]
enum Mode {
    /// Parse the envelope and send a constant response.
    Bare,
    /// Store tasks in an SQLite file.
    Sqlite {
        /// The database file. It is created if it does not exist.
        #[arg(long)]
        path: PathBuf,
        /// Number of tasks to keep in memory; the others are read from the file.
        #[arg(long, default_value_t = 100_000)]
        cache_tasks: usize,
    },
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    match cli.mode {
        Mode::Bare => serve(cli.listen, bare::router()).await,
        Mode::Sqlite { path, cache_tasks } => {
            let (router, writer) = sqlite::open(&path, cache_tasks)?;
            serve(cli.listen, router).await?;
            // The router is dropped, and with it the last sender: the writer commits what is queued, and ends.
            tokio::task::spawn_blocking(move || writer.join())
                .await?
                .map_err(|_| anyhow::anyhow!("the writer panicked"))
        }
    }
}

async fn serve(listen: SocketAddr, router: Router) -> anyhow::Result<()> {
    let listener = TcpListener::bind(listen).await?;
    println!("listening on {}", listener.local_addr()?);
    let mut terminate = signal(SignalKind::terminate())?;
    let listener = listener.tap_io(|stream| {
        // Each response is one small write, so Nagle's algorithm would only add latency.
        stream.set_nodelay(true).ok();
    });
    axum::serve(listener, router)
        .with_graceful_shutdown(async move {
            terminate.recv().await;
        })
        .await?;
    Ok(())
}
