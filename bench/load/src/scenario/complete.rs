//! From `tools/call` to the collected result: create, then `tasks/get` back to back until the task is completed.

use std::time::Instant;

use serde_json::Value;

use crate::answer::Status;
use crate::session::{Server, Session};
use crate::window::{self, SharedWindow, Timing};

/// Flags of `load complete`.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    server: Server,
    #[command(flatten)]
    timing: Timing,
}

/// # Errors
/// If a response is not a task.
pub fn run(args: &Args) -> anyhow::Result<Value> {
    window::measure(&args.timing, |_, window| client(args.server.clone(), window))
}

async fn client(server: Server, window: SharedWindow) -> anyhow::Result<()> {
    let mut session = Session::open(&server).await?;
    let mut task_id = String::new();
    while !window.borrow().is_over() {
        let started = Instant::now();
        session.create(&mut task_id).await?;
        window.borrow_mut().count_request();
        while session.get(&task_id).await? != Status::Completed {
            window.borrow_mut().count_request();
        }
        let mut window = window.borrow_mut();
        window.count_request();
        window.record(started);
    }
    Ok(())
}
