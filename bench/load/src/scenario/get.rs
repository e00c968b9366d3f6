//! `tasks/get`, uniformly at random over all tasks of a file.

use std::{cell::Cell, path::PathBuf, rc::Rc, time::Instant};

use serde_json::Value;

use crate::answer::Status;
use crate::scenario::ids::Ids;
use crate::session::{Server, Session};
use crate::window::{self, SharedWindow, Timing};

/// Flags of `load get`.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    server: Server,
    #[command(flatten)]
    timing: Timing,
    /// The task IDs to read, one per line.
    #[arg(long)]
    ids: PathBuf,
    /// Seed of the order in which tasks are read.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// # Errors
/// If a response is not the requested task.
pub fn run(args: &Args) -> anyhow::Result<Value> {
    let ids = Rc::new(Ids::read(&args.ids)?);
    let mut seeds = fastrand::Rng::with_seed(args.seed);
    let completed = Rc::new(Cell::new(0_u64));
    let mut figures = window::measure(&args.timing, |_, window| {
        let random = seeds.fork();
        let (ids, completed) = (Rc::clone(&ids), Rc::clone(&completed));
        client(args.server.clone(), window, ids, random, completed)
    })?;
    figures["tasks"] = ids.len().into();
    figures["seed"] = args.seed.into();
    figures["seen_completed"] = completed.get().into();
    Ok(figures)
}

async fn client(
    server: Server,
    window: SharedWindow,
    ids: Rc<Ids>,
    mut random: fastrand::Rng,
    completed: Rc<Cell<u64>>,
) -> anyhow::Result<()> {
    let mut session = Session::open(&server).await?;
    while !window.borrow().is_over() {
        let task_id = ids.get(random.usize(..ids.len()));
        let started = Instant::now();
        let status = session.get(task_id).await?;
        let mut window = window.borrow_mut();
        window.count_request();
        window.record(started);
        if status == Status::Completed && window.is_measured() {
            completed.set(completed.get() + 1);
        }
    }
    Ok(())
}
