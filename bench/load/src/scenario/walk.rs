//! Reads the whole list of one owner's tasks, checks their number, and saves the cursors for `list`.

use std::{path::PathBuf, time::Instant};

use anyhow::ensure;
use serde_json::{Value, json};

use crate::scenario::ids::Ids;
use crate::session::Server;
use crate::stateful::{PAGE_TASKS, Stateful};
use crate::window::{on_one_thread, round};

/// Flags of `load walk`.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    server: Server,
    /// Minimum number of tasks. `fill` creates up to one more per connection.
    #[arg(long)]
    count: usize,
    /// Write the cursors of full pages to this file.
    #[arg(long)]
    cursors_out: PathBuf,
}

/// # Errors
/// If the list has fewer tasks.
pub fn run(args: &Args) -> anyhow::Result<Value> {
    let started = Instant::now();
    let (tasks, cursors) = on_one_thread(walk(&args.server))?;
    ensure!(tasks >= args.count, "the list has {tasks} tasks instead of {}", args.count);
    cursors.write(&args.cursors_out)?;
    let seconds = round(started.elapsed().as_secs_f64());
    Ok(json!({ "count": tasks, "cursors": cursors.len(), "errors": 0, "seconds": seconds }))
}

async fn walk(server: &Server) -> anyhow::Result<(usize, Ids)> {
    let mut session = Stateful::open(server).await?;
    let mut cursors = Ids::default();
    let mut tasks = 0;
    let mut cursor: Option<String> = None;
    loop {
        let page = session.list(cursor.as_deref()).await?;
        tasks += page.tasks.len();
        if let Some(cursor) = cursor.filter(|_| page.tasks.len() == PAGE_TASKS) {
            cursors.push(&cursor);
        }
        cursor = page.next_cursor.map(str::to_owned);
        if cursor.is_none() {
            return Ok((tasks, cursors));
        }
    }
}
