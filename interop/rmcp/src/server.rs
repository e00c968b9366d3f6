//! The server under test: the program in `LONGHAUL_PROGRAM`, usually the `conformance` example.

use std::fmt::Write as _;
use std::process::Stdio;

use anyhow::Context as _;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// The transport between client and server.
#[derive(Clone, Copy, Debug)]
pub enum Over {
    Http,
    Stdio,
}

pub const TRANSPORTS: [Over; 2] = [Over::Http, Over::Stdio];

const TOKEN: &str = "a-token-of-the-test";

/// A server over HTTP. It is killed on drop.
pub(crate) struct HttpServer {
    pub(crate) url: String,
    _process: Child,
    _folder: TempDir,
}

impl HttpServer {
    pub(crate) const TOKEN: &str = TOKEN;

    pub(crate) async fn start() -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let tokens = folder.path().join("tokens");
        let mut line = String::from("owner ");
        for byte in Sha256::digest(TOKEN.as_bytes()) {
            write!(line, "{byte:02x}")?;
        }
        std::fs::write(&tokens, line + "\n")?;
        let mut process = Command::new(program()?)
            .args(["--listen", "127.0.0.1:0", "--store", "memory:", "--token-file"])
            .arg(tokens)
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let mut lines = BufReader::new(process.stderr.take().context("no standard error")?).lines();
        let url = loop {
            let line = lines.next_line().await?.context("the server ended before it listened")?;
            if let Some((_, url)) = line.split_once("listening on ") {
                break url.to_owned();
            }
        };
        // The rest is read and discarded, so that the pipe never fills.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Ok(Self { url, _process: process, _folder: folder })
    }
}

/// The command for a server over stdio.
pub(crate) fn stdio() -> anyhow::Result<Command> {
    let mut command = Command::new(program()?);
    command.args(["--stdio", "--store", "memory:"]).kill_on_drop(true);
    Ok(command)
}

fn program() -> anyhow::Result<std::ffi::OsString> {
    std::env::var_os("LONGHAUL_PROGRAM").context("set LONGHAUL_PROGRAM to the conformance example's program")
}
