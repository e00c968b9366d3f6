//! Tasks of recorded steps: create a task, then poll it with `tasks/get` until it is completed.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::answer::Status;
use crate::session::{Server, Session};
use crate::window::{self, SharedWindow, Timing};

/// The steps of each task.
pub const STEPS: u32 = 100;

/// Flags of `load steps`.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    server: Server,
    #[command(flatten)]
    timing: Timing,
    /// The pause between two polls. Back-to-back polls would be most of the load. A task's time is measured to within this
    /// pause.
    #[arg(long, default_value_t = 5)]
    poll_ms: u64,
}

/// # Errors
/// If a response is not a task.
pub fn run(args: &Args) -> anyhow::Result<Value> {
    let mut figures = window::measure(&args.timing, |_, window| {
        client(args.server.clone(), window, Duration::from_millis(args.poll_ms))
    })?;
    let tasks_per_s = figures["rate_per_s"].as_f64().unwrap_or_default();
    figures["steps_per_s"] = (tasks_per_s * f64::from(STEPS)).into();
    Ok(figures)
}

async fn client(server: Server, window: SharedWindow, pause: Duration) -> anyhow::Result<()> {
    let mut session = Session::open(&server).await?;
    let mut task_id = String::new();
    while !window.borrow().is_over() {
        let started = Instant::now();
        session.create_steps(&mut task_id, STEPS).await?;
        window.borrow_mut().count_request();
        while session.get(&task_id).await? != Status::Completed {
            window.borrow_mut().count_request();
            tokio::time::sleep(pause).await;
        }
        let mut window = window.borrow_mut();
        window.count_request();
        window.record(started);
    }
    Ok(())
}
