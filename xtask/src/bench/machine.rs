//! The programs of the benchmark and the disk that is measured.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::Deserialize;
use xshell::{Shell, cmd};

/// The built programs, and a scratch directory on the disk that is measured.
pub(crate) struct Machine {
    pub(super) ours: PathBuf,
    pub(super) ceiling: PathBuf,
    pub(super) peer: PathBuf,
    load: PathBuf,
    pub(super) scratch: tempfile::TempDir,
}

/// The output of the load generator. A value that a scenario does not measure is 0.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Measurement {
    pub(crate) rate_per_s: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) server_cpu_us_per_request: f64,
    pub(crate) other_cores: f64,
    pub(crate) rss_bytes: f64,
}

impl Machine {
    /// Builds Longhaul and the load generator and, if `with_others`, the ceilings and the peer.
    pub(super) fn prepare(shell: &Shell, with_others: bool) -> anyhow::Result<Self> {
        // All servers are built with the same profile and, by `.cargo/config.toml`, the same SQLite.
        cmd!(shell, "cargo build --profile dist --example conformance").run()?;
        let bench = crate::target().join("bench");
        {
            let _bench = shell.push_dir("bench");
            let only_load: &[&str] = if with_others { &[] } else { &["-p", "load"] };
            cmd!(shell, "cargo build --release --target-dir {bench} {only_load...}").run()?;
        }
        let bench = bench.join("release");
        // Not in the system's temporary directory, which may be in memory.
        let scratch = tempfile::tempdir_in(crate::target()).context("cannot create a scratch directory")?;
        Ok(Self {
            ours: crate::target().join("dist/examples/conformance"),
            ceiling: bench.join("ceiling"),
            peer: bench.join("peer-rmcp"),
            load: bench.join("load"),
            scratch,
        })
    }

    /// Runs a scenario of the load generator.
    pub(super) fn load(&self, arguments: &[&str]) -> anyhow::Result<Measurement> {
        let output = std::process::Command::new(&self.load).args(arguments).output().context("cannot run load")?;
        let line = String::from_utf8_lossy(&output.stdout);
        anyhow::ensure!(output.status.success(), "load {arguments:?} failed: {line}");
        serde_json::from_str(line.trim()).with_context(|| format!("load {arguments:?} printed {line:?}"))
    }

    /// Measures a write with fdatasync on this disk.
    pub(super) fn fsync(&self) -> anyhow::Result<Measurement> {
        self.load(&["fsync", "--dir", text(self.scratch.path())])
    }
}

/// A path as text. All paths here are made from text.
pub(super) fn text(path: &Path) -> &str {
    path.to_str().unwrap_or_default()
}
