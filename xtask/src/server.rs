//! A server for as long as a part of the tests needs it.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anyhow::Context as _;
use xshell::{Shell, cmd};

/// The `conformance` example, serving on a port of its own.
pub(crate) struct Server {
    process: Child,
    url: String,
}

/// The program of the `conformance` example, built if nobody names another one that is to be tested in its place.
pub(crate) fn program(shell: &Shell) -> anyhow::Result<PathBuf> {
    if let Some(named) = std::env::var_os("LONGHAUL_PROGRAM") {
        return Ok(named.into());
    }
    cmd!(shell, "cargo build --release --quiet --example conformance").run()?;
    Ok(crate::root().join("target/release/examples/conformance"))
}

impl Server {
    pub(crate) fn start(shell: &Shell) -> anyhow::Result<Self> {
        let mut process = Command::new(program(shell)?)
            .args(["--listen", "127.0.0.1:0", "--store", "memory:"])
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot start the conformance example")?;
        let lines = BufReader::new(process.stderr.take().context("no standard error")?);
        let mut said = lines.lines();
        let url = loop {
            let line = said.next().context("the server ended before it listened")??;
            if let Some((_, url)) = line.split_once("listening on ") {
                break url.to_owned();
            }
        };
        // Whatever it says later goes to our own standard error, so that its pipe never fills.
        std::thread::spawn(move || said.map_while(Result::ok).for_each(|line| eprintln!("server: {line}")));
        Ok(Self { process, url })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself, which the part that used it has noticed.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
