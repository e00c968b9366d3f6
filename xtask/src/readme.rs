//! Every command in the README and on the pages that follow it, run as a reader would: all `sh` blocks in order, in one
//! shell.

use std::fmt::Write as _;
use std::process::Command;

use anyhow::Context as _;
use xshell::Shell;

/// The pages in the order in which a reader follows them. Each needs the server and the shorthands of the first.
const PAGES: &[&str] = &["README.md", "docs/tour.md", "docs/clients.md", "docs/operating.md", "docs/callers.md"];

/// Commands that are this very run, or that it has run already.
const ELSEWHERE: &[&str] = &["git clone", "cd longhaul", "cargo xtask"];

/// Gives up when the server has ended.
const WAIT_UNTIL_IT_ANSWERS: &str =
    "until curl -sf http://127.0.0.1:8377/healthz >/dev/null; do kill -0 $! || exit 1; sleep 0.1; done";

pub(crate) fn run(shell: &Shell) -> anyhow::Result<()> {
    let pages = PAGES.iter().map(|page| shell.read_file(page)).collect::<Result<Vec<_>, _>>()?.concat();
    let home = tempfile::tempdir()?;
    let mut script = String::from("set -u\ntrap 'kill -9 $(jobs -p) 2>/dev/null; wait' EXIT\n");
    for block in blocks(&pages) {
        for line in block.lines().filter(|line| !ELSEWHERE.iter().any(|known| line.trim().starts_with(known))) {
            writeln!(script, "{line}")?;
            if line.trim_end().ends_with('&') {
                // A reader waits for the server's greeting before going on.
                writeln!(script, "{WAIT_UNTIL_IT_ANSWERS}")?;
            }
        }
    }
    let output = Command::new("bash")
        .arg("-c")
        .arg(&script)
        .env("LONGHAUL_STORE", format!("sqlite:{}", home.path().join("tasks.db").display()))
        .current_dir(shell.current_dir())
        .output()
        .context("cannot run bash")?;
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    for promise in promises(&pages) {
        anyhow::ensure!(said.contains(&promise), "a page promises {promise:?}, but got\n{said}\n{complained}");
        eprintln!("  kept: {promise}");
    }
    anyhow::ensure!(output.status.success(), "a command of a page failed\n{said}\n{complained}");
    Ok(())
}

fn blocks(pages: &str) -> impl Iterator<Item = &str> {
    pages.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next())
}

/// What the pages say that a reader will see: lines of `<!-- shows: TEXT -->`.
fn promises(pages: &str) -> Vec<String> {
    pages
        .lines()
        .filter_map(|line| line.trim().strip_prefix("<!-- shows: "))
        .filter_map(|rest| rest.strip_suffix(" -->"))
        .map(str::to_owned)
        .collect()
}
