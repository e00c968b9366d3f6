//! Resident memory of a process.

use anyhow::Context;
use serde_json::{Value, json};

use crate::window::process;

/// Flags of `load rss`.
#[derive(clap::Args)]
pub struct Args {
    /// The process.
    #[arg(long)]
    pid: i32,
}

/// # Errors
/// When there is no such process.
pub fn run(args: &Args) -> anyhow::Result<Value> {
    let status = process(args.pid)?.status()?;
    let kib = status.vmrss.context("the process has no memory")?;
    let kib_max = status.vmhwm.context("the process has no memory")?;
    Ok(json!({ "pid": args.pid, "errors": 0, "rss_bytes": kib * 1024, "rss_max_bytes": kib_max * 1024 }))
}
