//! Runs all `sh` blocks of the README and of the pages after it, in order, in one shell.

use std::fmt::Write as _;
use std::process::Command;

use anyhow::Context as _;
use xshell::Shell;

/// The pages in reading order. Each uses the server and the shell functions of the first.
const PAGES: &[&str] =
    &["README.md", "docs/tour.md", "docs/clients.md", "docs/lesson.md", "docs/operating.md", "docs/callers.md"];

/// Commands that are not run: those that fetch the repository, and `cargo xtask`, which is this program.
const SKIPPED: &[&str] = &["git clone", "cd longhaul", "cargo xtask"];

/// Waits for the server, and fails if it has ended.
const WAIT_FOR_SERVER: &str =
    "until curl -sf http://127.0.0.1:8377/healthz >/dev/null; do kill -0 $! || exit 1; sleep 0.1; done";

pub(crate) fn run(shell: &Shell) -> anyhow::Result<()> {
    let pages = PAGES.iter().map(|page| shell.read_file(page)).collect::<Result<Vec<_>, _>>()?.concat();
    let home = tempfile::tempdir()?;
    let mut script = String::from("set -u\ntrap 'kill -9 $(jobs -p) 2>/dev/null; wait' EXIT\n");
    for block in shell_blocks(&pages) {
        for line in block.lines().filter(|line| !SKIPPED.iter().any(|skipped| line.trim().starts_with(skipped))) {
            writeln!(script, "{line}")?;
            if line.trim_end().ends_with('&') {
                // The server is the only command that the pages run in the background.
                writeln!(script, "{WAIT_FOR_SERVER}")?;
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
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    for text in expected_texts(&pages) {
        anyhow::ensure!(
            stdout.contains(&text),
            "a page says that a command prints {text:?}, but the output was\n{stdout}\n{stderr}"
        );
        eprintln!("  printed: {text}");
    }
    anyhow::ensure!(output.status.success(), "a command of a page failed\n{stdout}\n{stderr}");
    Ok(())
}

fn shell_blocks(pages: &str) -> impl Iterator<Item = &str> {
    pages.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next())
}

/// Texts that the commands must print, from lines `<!-- shows: TEXT -->` of the pages.
fn expected_texts(pages: &str) -> Vec<String> {
    pages
        .lines()
        .filter_map(|line| line.trim().strip_prefix("<!-- shows: "))
        .filter_map(|rest| rest.strip_suffix(" -->"))
        .map(str::to_owned)
        .collect()
}
