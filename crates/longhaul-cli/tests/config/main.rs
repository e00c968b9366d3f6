//! Config files with the real program: tools that run commands, how these end, kills of the server, and `longhaul config`.
#![cfg(target_os = "linux")]

mod commands;
mod follow;
mod injection;
#[path = "../kit/mod.rs"]
mod kit;
mod messages;
mod program;
mod questions;

use std::path::{Path, PathBuf};

/// A folder with a config file, a store and the records of the commands that run.
struct ConfigFolder {
    folder: tempfile::TempDir,
}

impl ConfigFolder {
    /// `@` in the text stands for the path of the folder.
    fn new(config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let text = config.replace('@', folder.path().to_str().unwrap());
        std::fs::write(folder.path().join("longhaul.toml"), text).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Launches a server with the config file. Its records of commands are apart from those of other tests.
    fn launch(&self) -> kit::Launch {
        let records = format!("LONGHAUL_PROCESS_DIR={}", self.path("processes").display());
        let launch = kit::Launch::longhaul().under(["env".to_owned(), records]);
        launch.store(&self.path("tasks.db")).arg("--config").arg(self.path("longhaul.toml"))
    }

    /// The number of processes that have this variable (`NAME=value`) in their environment.
    fn processes(variable: &str) -> usize {
        let has_it = |path: &Path| {
            let environment = std::fs::read(path.join("environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|entry| entry == variable.as_bytes())
        };
        std::fs::read_dir("/proc")
            .unwrap()
            .filter(|entry| entry.as_ref().is_ok_and(|entry| has_it(&entry.path())))
            .count()
    }
}
