//! `tasks/list` at 2025-11-25: the first page, or pages uniformly at random over all cursors of a file.

use std::{path::PathBuf, rc::Rc, time::Instant};

use serde_json::Value;

use crate::scenario::ids::Ids;
use crate::session::Server;
use crate::stateful::Stateful;
use crate::window::{self, SharedWindow, Timing};

/// Flags of `load list`.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    server: Server,
    #[command(flatten)]
    timing: Timing,
    /// The cursors to read at, one per line. Without this flag only the first page is read.
    #[arg(long)]
    cursors: Option<PathBuf>,
    /// Seed of the order in which pages are read.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// # Errors
/// If a response is not a full page.
pub fn run(args: &Args) -> anyhow::Result<Value> {
    let cursors = Rc::new(args.cursors.as_deref().map(Ids::read).transpose()?);
    let mut seeds = fastrand::Rng::with_seed(args.seed);
    window::measure(&args.timing, |_, window| client(args.server.clone(), window, Rc::clone(&cursors), seeds.fork()))
}

async fn client(
    server: Server,
    window: SharedWindow,
    cursors: Rc<Option<Ids>>,
    mut random: fastrand::Rng,
) -> anyhow::Result<()> {
    let mut session = Stateful::open(&server).await?;
    while !window.borrow().is_over() {
        let cursor = (*cursors).as_ref().map(|cursors| cursors.get(random.usize(..cursors.len())));
        let started = Instant::now();
        session.full_page(cursor).await?;
        let mut window = window.borrow_mut();
        window.count_request();
        window.record(started);
    }
    Ok(())
}
