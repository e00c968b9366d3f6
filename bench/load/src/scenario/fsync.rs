//! The time of one durable write on this disk: a small write with `fdatasync`.
//!
//! It measures two kinds, because SQLite's write-ahead log does both and file systems treat them differently: while the
//! log grows, each write changes the size of the file; after a checkpoint, the log is overwritten in place.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context;
use hdrhistogram::Histogram;
use serde_json::{Value, json};

use crate::window::{Sample, round};

/// Flags of `load fsync`.
#[derive(clap::Args)]
pub struct Args {
    /// A directory on the disk to measure. A file is created there and removed again.
    #[arg(long)]
    dir: PathBuf,
    /// Bytes of each write.
    #[arg(long, default_value_t = 8192)]
    bytes: usize,
    /// How many writes of each kind.
    #[arg(long, default_value_t = 400)]
    count: usize,
}

/// # Errors
/// When the directory cannot be written.
pub fn run(args: &Args) -> anyhow::Result<Value> {
    let path = args.dir.join(format!("fsync-{}.tmp", std::process::id()));
    let before = Sample::take(None)?;
    let measured = measure(args, &path);
    let other_cores = Sample::take(None)?.other_cores_since(&before);
    // A file that cannot be removed does not invalidate the measurement.
    std::fs::remove_file(&path).ok();
    let (append, overwrite) = measured.with_context(|| format!("cannot write in {}", args.dir.display()))?;
    Ok(json!({
        "dir": args.dir,
        "bytes": args.bytes,
        "count": args.count,
        "errors": 0,
        "p50_us": micros(&append, 0.5),
        "p99_us": micros(&append, 0.99),
        "overwrite_p50_us": micros(&overwrite, 0.5),
        "overwrite_p99_us": micros(&overwrite, 0.99),
        "other_cores": round(other_cores),
    }))
}

#[expect(clippy::cast_precision_loss, reason = "latencies in ns are far below 2^52")]
fn micros(latency_ns: &Histogram<u64>, quantile: f64) -> f64 {
    round(latency_ns.value_at_quantile(quantile) as f64 / 1e3)
}

fn measure(args: &Args, path: &std::path::Path) -> anyhow::Result<(Histogram<u64>, Histogram<u64>)> {
    let mut file = File::create_new(path)?;
    let append = writes(&mut file, args)?;
    file.seek(SeekFrom::Start(0))?;
    let overwrite = writes(&mut file, args)?;
    Ok((append, overwrite))
}

fn writes(file: &mut File, args: &Args) -> anyhow::Result<Histogram<u64>> {
    let mut latency_ns = Histogram::new(3)?;
    let block = vec![0x5a; args.bytes];
    for _ in 0..args.count {
        let started = Instant::now();
        file.write_all(&block)?;
        file.sync_data()?;
        latency_ns.record(u64::try_from(started.elapsed().as_nanos())?)?;
    }
    Ok(latency_ns)
}
