//! The server for a step of the tests.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anyhow::Context as _;
use xshell::{Shell, cmd};

/// The `conformance` example on a free port. It is killed on drop.
pub(crate) struct Server {
    process: Child,
    url: String,
}

/// The program in `LONGHAUL_PROGRAM`; if that is not set, builds the `conformance` example.
pub(crate) fn program(shell: &Shell) -> anyhow::Result<PathBuf> {
    if let Some(named) = std::env::var_os("LONGHAUL_PROGRAM") {
        return Ok(named.into());
    }
    cmd!(shell, "cargo build --release --quiet --example conformance").run()?;
    Ok(crate::target().join("release/examples/conformance"))
}

impl Server {
    pub(crate) fn start(shell: &Shell) -> anyhow::Result<Self> {
        let mut process = Command::new(program(shell)?)
            .args(["--listen", "127.0.0.1:0", "--store", "memory:"])
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot start the conformance example")?;
        let mut lines = BufReader::new(process.stderr.take().context("no standard error")?).lines();
        let url = loop {
            let line = lines.next().context("the server ended before it listened")??;
            if let Some((_, url)) = line.split_once("listening on ") {
                break url.to_owned();
            }
        };
        // The rest is copied to standard error, so that the pipe never fills.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| eprintln!("server: {line}")));
        Ok(Self { process, url })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // If the server has ended by itself, the step that used it has failed already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
