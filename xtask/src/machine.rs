//! Installs what the tests need on a fresh machine.

use anyhow::Context as _;
use xshell::{Shell, cmd};

/// A command that succeeds if the program is installed, and the Debian package that contains it.
const NEEDED: &[(&str, &str)] = &[
    ("command -v strace", "strace"),
    ("command -v curl", "curl"),
    ("command -v node", "nodejs"),
    ("command -v npm", "npm"),
    ("command -v pkill", "procps"),
    ("command -v chromium", "chromium"),
    ("ls /usr/lib/*/faketime/libfaketimeMT.so.1", "libfaketime"),
    // Debian's Python alone has neither `pip` nor `venv`.
    ("python3 -c 'import ensurepip, venv'", "python3-venv"),
];

pub(crate) fn prepare(shell: &Shell) -> anyhow::Result<()> {
    let missing: Vec<_> = NEEDED.iter().filter(|(check, _)| !succeeds(shell, check)).collect();
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
    // `npm ci` installs exactly the versions of the lock file.
    cmd!(shell, "npm ci --no-audit --no-fund --loglevel=error").run().context("cannot install the interop peers")?;
    Ok(())
}

fn succeeds(shell: &Shell, check: &str) -> bool {
    cmd!(shell, "sh -c {check}").quiet().ignore_stdout().ignore_stderr().run().is_ok()
}
