//! What a plain program can reach on this machine, as the measure for the product.
//!
//! - `ceiling bare` parses the JSON-RPC envelope and answers a constant: the ceiling for reads.
//! - `ceiling sqlite --path FILE` keeps tasks with rusqlite alone, through one group-committing writer: the ceiling for
//!   durable creation and completion.
//!
//! Both serve `POST /mcp` with axum, over the same [`envelope`] and the same [`answer`]s.

mod answer;
mod bare;
mod envelope;
mod sqlite;

use std::{net::SocketAddr, path::PathBuf};

use axum::{Router, serve::ListenerExt};
use clap::{Parser, Subcommand};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};

/// The product's allocator, so that it is no part of the difference.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
#[command(about = "The ceilings of the benchmark")]
struct Cli {
    #[command(subcommand)]
    mode: Mode,
    /// Where to listen; port 0 takes a free one.
    #[arg(long, global = true, default_value = "127.0.0.1:8380")]
    listen: SocketAddr,
}

#[derive(Subcommand)]
enum Mode {
    /// Parse the envelope, answer a constant.
    Bare,
    /// Keep tasks in an SQLite file.
    Sqlite {
        /// The database file; it is created when missing.
        #[arg(long)]
        path: PathBuf,
        /// How many tasks to keep in memory; the others are read from the file.
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
            // The router is gone, and with it the last sender: the writer commits what waits, and ends.
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
        // Answers are small and whole, so waiting for more to send only adds latency.
        stream.set_nodelay(true).ok();
    });
    axum::serve(listener, router)
        .with_graceful_shutdown(async move {
            terminate.recv().await;
        })
        .await?;
    Ok(())
}
