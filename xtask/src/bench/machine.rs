//! What is measured with, and what it is measured on.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::Deserialize;
use xshell::{Shell, cmd};

/// The programs, built, and a scratch folder on the disk that is measured.
pub(crate) struct Machine {
    pub(super) ours: PathBuf,
    pub(super) ceiling: PathBuf,
    pub(super) peer: PathBuf,
    load: PathBuf,
    pub(super) scratch: tempfile::TempDir,
}

/// One line of the load generator. What a scenario does not measure stays at nothing.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Measured {
    pub(crate) rate_per_s: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) server_cpu_us_per_request: f64,
    pub(crate) other_cores: f64,
    pub(crate) rss_bytes: f64,
}

impl Machine {
    /// Builds what takes part: everybody, or only us.
    pub(super) fn prepare(shell: &Shell, with_others: bool) -> anyhow::Result<Self> {
        // Both sides get the same profile, and by their `.cargo/config.toml` the same SQLite.
        cmd!(shell, "cargo build --profile dist --example conformance").run()?;
        {
            let _bench = shell.push_dir("bench");
            let only_load: &[&str] = if with_others { &[] } else { &["-p", "load"] };
            cmd!(shell, "cargo build --release {only_load...}").run()?;
        }
        let root = crate::root();
        let bench = root.join("bench/target/release");
        // Beside the build, not in a temporary folder that may be memory.
        let scratch = tempfile::tempdir_in(root.join("target")).context("cannot make a scratch folder")?;
        Ok(Self {
            ours: root.join("target/dist/examples/conformance"),
            ceiling: bench.join("ceiling"),
            peer: bench.join("peer-rmcp"),
            load: bench.join("load"),
            scratch,
        })
    }

    /// Runs a scenario of the load generator.
    pub(super) fn load(&self, arguments: &[&str]) -> anyhow::Result<Measured> {
        let output = std::process::Command::new(&self.load).args(arguments).output().context("cannot run load")?;
        let line = String::from_utf8_lossy(&output.stdout);
        anyhow::ensure!(output.status.success(), "load {arguments:?} failed: {line}");
        serde_json::from_str(line.trim()).with_context(|| format!("load {arguments:?} said {line:?}"))
    }

    /// A write and its fdatasync on this disk.
    pub(super) fn fsync(&self) -> anyhow::Result<Measured> {
        self.load(&["fsync", "--dir", text(self.scratch.path())])
    }
}

/// A path of ours as text; we made it, and it is.
pub(super) fn text(path: &Path) -> &str {
    path.to_str().unwrap_or_default()
}
