//! What a fresh machine lacks.

use anyhow::Context as _;
use xshell::{Shell, cmd};

/// Programs that the tests run, and the Debian packages that have them.
const PROGRAMS: &[(&str, &str)] =
    &[("strace", "strace"), ("curl", "curl"), ("node", "nodejs"), ("npm", "npm"), ("pkill", "procps")];

pub(crate) fn prepare(shell: &Shell) -> anyhow::Result<()> {
    let missing: Vec<_> = PROGRAMS.iter().filter(|(program, _)| !is_there(shell, program)).collect();
    if !missing.is_empty() {
        let packages: Vec<&str> = missing.iter().map(|(_, package)| *package).collect();
        let names = packages.join(" ");
        eprintln!("installing {names}");
        cmd!(shell, "apt-get update").quiet().ignore_stdout().run().context("apt-get update")?;
        cmd!(shell, "apt-get install -y --no-install-recommends {packages...}")
            .quiet()
            .ignore_stdout()
            .run()
            .with_context(|| format!("cannot install {names}; install them by hand and run this again"))?;
    }
    let _interop = shell.push_dir("interop");
    // The lock file is what is installed; nothing newer.
    cmd!(shell, "npm ci --no-audit --no-fund --loglevel=error").run().context("cannot install the interop peers")?;
    Ok(())
}

fn is_there(shell: &Shell, program: &str) -> bool {
    cmd!(shell, "sh -c").arg(format!("command -v {program}")).quiet().ignore_stdout().ignore_stderr().run().is_ok()
}
