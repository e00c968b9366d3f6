//! The servers that are measured.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Context as _;

use super::machine::{Machine, Measurement, text};

/// A server that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Contestant {
    /// The `conformance` example on SQLite.
    Ours,
    /// An endpoint with a constant response.
    Bare,
    /// The same endpoint with rusqlite alone behind it.
    Sqlite,
    /// The official Rust SDK, with tasks in memory.
    Rmcp,
}

/// A running server with a new database file. It is killed on drop.
pub(crate) struct RunningServer<'a> {
    machine: &'a Machine,
    process: Child,
    address: String,
    ids: PathBuf,
    cursors: PathBuf,
    /// The bearer token that the server requires, if any.
    token: Option<String>,
}

/// Longhaul's rate limit during the measurement, in requests per second. It is high because one owner sends all
/// requests. Requests are still counted.
pub(super) const RATE_LIMIT: &str = "1000000";

static FILES: AtomicU32 = AtomicU32::new(0);

impl Contestant {
    pub(crate) fn start(self, machine: &Machine) -> anyhow::Result<RunningServer<'_>> {
        self.start_with(machine, false)
    }

    /// Starts Longhaul with a token file, because it has lists for identified owners only.
    pub(crate) fn start_for_one_owner(self, machine: &Machine) -> anyhow::Result<RunningServer<'_>> {
        self.start_with(machine, true)
    }

    fn start_with(self, machine: &Machine, has_token: bool) -> anyhow::Result<RunningServer<'_>> {
        let number = FILES.fetch_add(1, Ordering::Relaxed);
        let file = machine.scratch.path().join(format!("{number}.db"));
        let file = text(&file);
        let listen = ["--listen", "127.0.0.1:0"];
        let mut command = match self {
            Self::Ours => Command::new(&machine.ours),
            Self::Bare | Self::Sqlite => Command::new(&machine.ceiling),
            Self::Rmcp => Command::new(&machine.peer),
        };
        match self {
            Self::Ours => {
                let rate_limit = ["--rate-limit", RATE_LIMIT];
                command.args(["--store", &format!("sqlite:{file}")]).args(rate_limit).env("RUST_LOG", "warn")
            }
            Self::Bare => command.arg("bare"),
            Self::Sqlite => command.args(["sqlite", "--path", file]),
            Self::Rmcp => &mut command,
        };
        if has_token {
            command.arg("--token-file").arg(machine.scratch.path().join(format!("{number}.tokens")));
        }
        let mut process = command
            .args(listen)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {self:?}"))?;
        let out = process.stdout.take().context("no standard output")?;
        let err = process.stderr.take().context("no standard error")?;
        // The ceilings print their address to standard output, Longhaul to standard error.
        let output: Box<dyn Read + Send> = if self == Self::Ours { Box::new(err) } else { Box::new(out) };
        let mut lines = BufReader::new(output).lines();
        let mut token = None;
        let address = loop {
            let line = lines.next().with_context(|| format!("{self:?} ended before it listened"))??;
            if let Some((_, address)) = line.split_once("listening on ") {
                break address.trim_start_matches("http://").trim_end_matches("/mcp").trim().to_owned();
            }
            // A server that creates its token file prints the first token on a line of its own.
            token = token.or_else(|| is_token(line.trim()).then(|| line.trim().to_owned()));
        };
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        let ids = machine.scratch.path().join(format!("{number}.ids"));
        let cursors = machine.scratch.path().join(format!("{number}.cursors"));
        Ok(RunningServer { machine, process, address, ids, cursors, token })
    }
}

fn is_token(line: &str) -> bool {
    line.len() == 64 && line.bytes().all(|byte| byte.is_ascii_hexdigit())
}

impl RunningServer<'_> {
    fn load(&self, scenario: &str, arguments: &[&str]) -> anyhow::Result<Measurement> {
        let pid = self.process.id().to_string();
        let mut all = vec!["--pid", &pid];
        all.extend(arguments);
        self.load_plain(scenario, &all)
    }

    /// Runs a scenario without measuring the processor time of the server.
    fn load_plain(&self, scenario: &str, arguments: &[&str]) -> anyhow::Result<Measurement> {
        let mut all = vec![scenario, "--server", &self.address];
        all.extend(self.token.iter().flat_map(|token| ["--token", token.as_str()]));
        all.extend(arguments);
        self.machine.load(&all)
    }

    pub(crate) fn create(&self, connections: u32, seconds: u32) -> anyhow::Result<Measurement> {
        let (connections, seconds) = (connections.to_string(), seconds.to_string());
        let ids = text(&self.ids);
        self.load("create", &["--connections", &connections, "--seconds", &seconds, "--ids-out", ids])
    }

    pub(crate) fn get(&self, connections: u32, seconds: u32) -> anyhow::Result<Measurement> {
        let (connections, seconds) = (connections.to_string(), seconds.to_string());
        let ids = text(&self.ids);
        self.load("get", &["--connections", &connections, "--seconds", &seconds, "--ids", ids])
    }

    pub(crate) fn complete(&self, connections: u32, seconds: u32) -> anyhow::Result<Measurement> {
        let (connections, seconds) = (connections.to_string(), seconds.to_string());
        self.load("complete", &["--connections", &connections, "--seconds", &seconds])
    }

    /// Runs tasks of recorded steps; an operation is one task.
    pub(crate) fn steps(&self, tasks: u32, seconds: u32) -> anyhow::Result<Measurement> {
        // One task writes little, and its first commits are slower because they extend the log: the warm-up lets it write the
        // whole log once.
        let (poll_ms, warmup) = if tasks == 1 { ("1", "4") } else { ("5", "1") };
        let (tasks, seconds) = (tasks.to_string(), seconds.to_string());
        let flags = ["--connections", &tasks, "--seconds", &seconds, "--poll-ms", poll_ms, "--warmup-seconds", warmup];
        self.load("steps", &flags)
    }

    /// Creates settled tasks.
    pub(crate) fn fill(&self, tasks: usize, connections: u32) -> anyhow::Result<()> {
        self.fill_with(tasks, connections, 0)
    }

    /// Creates `tasks` settled tasks and `live` unsettled ones.
    pub(crate) fn fill_with(&self, tasks: usize, connections: u32, live: u32) -> anyhow::Result<()> {
        let (tasks, connections, live) = (tasks.to_string(), connections.to_string(), live.to_string());
        let ids = text(&self.ids);
        let to = ["--settle", "--ids-out", ids, "--count", &tasks, "--connections", &connections, "--live", &live];
        self.load_plain("fill", &to).map(drop)
    }

    /// Reads the whole list, which must contain at least `tasks` tasks, and saves its cursors.
    pub(crate) fn walk(&self, tasks: usize) -> anyhow::Result<()> {
        self.load_plain("walk", &["--count", &tasks.to_string(), "--cursors-out", text(&self.cursors)]).map(drop)
    }

    /// Reads pages of the list: the first page, or pages at the saved cursors.
    pub(crate) fn list(&self, connections: u32, seconds: u32, is_deep: bool) -> anyhow::Result<Measurement> {
        let (connections, seconds) = (connections.to_string(), seconds.to_string());
        let mut arguments = vec!["--connections", &connections, "--seconds", &seconds];
        if is_deep {
            arguments.extend(["--cursors", text(&self.cursors)]);
        }
        self.load("list", &arguments)
    }

    pub(crate) fn resident_bytes(&self) -> anyhow::Result<f64> {
        let pid = self.process.id().to_string();
        Ok(self.machine.load(&["rss", "--pid", &pid])?.rss_bytes)
    }
}

impl Drop for RunningServer<'_> {
    fn drop(&mut self) {
        // If the server has ended by itself, the scenario has failed already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
