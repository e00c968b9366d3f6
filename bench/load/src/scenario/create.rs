//! Durable creation of echo tasks: the rate at which `tools/call` is acknowledged.

use std::{cell::RefCell, path::PathBuf, rc::Rc, time::Instant};

use serde_json::Value;

use crate::scenario::ids::Ids;
use crate::session::{Server, Session};
use crate::window::{self, SharedWindow, Timing};

/// Flags of `load create`.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    server: Server,
    #[command(flatten)]
    timing: Timing,
    /// Write the IDs of all created tasks to this file.
    #[arg(long)]
    ids_out: Option<PathBuf>,
}

/// # Errors
/// If a response is not a task.
pub fn run(args: &Args) -> anyhow::Result<Value> {
    let ids = Rc::new(RefCell::new(Ids::default()));
    let figures = window::measure(&args.timing, |_, window| client(args.server.clone(), window, Rc::clone(&ids)))?;
    if let Some(path) = &args.ids_out {
        ids.borrow().write(path)?;
    }
    Ok(figures)
}

async fn client(server: Server, window: SharedWindow, ids: Rc<RefCell<Ids>>) -> anyhow::Result<()> {
    let mut session = Session::open(&server).await?;
    let mut task_id = String::new();
    while !window.borrow().is_over() {
        let started = Instant::now();
        session.create(&mut task_id).await?;
        let mut window = window.borrow_mut();
        window.count_request();
        window.record(started);
        ids.borrow_mut().push(&task_id);
    }
    Ok(())
}
