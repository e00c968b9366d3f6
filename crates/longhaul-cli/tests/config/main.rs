//! Config files, served by the real program: commands, their ends, kills of the server, and the commands `longhaul config`.
#![cfg(target_os = "linux")]

mod commands;
mod follow;
mod injection;
#[path = "../kit/mod.rs"]
mod kit;
mod program;

use std::path::{Path, PathBuf};

/// A folder with a config file, a store and a place for records of processes.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
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

    /// A server of the file, whose records are apart from those of other tests.
    fn launch(&self) -> kit::Launch {
        let records = format!("LONGHAUL_PROCESS_DIR={}", self.path("processes").display());
        let launch = kit::Launch::longhaul().under(["env".to_owned(), records]);
        launch.store(&self.path("tasks.db")).arg("--config").arg(self.path("longhaul.toml"))
    }

    /// How many processes run with this variable in their environment.
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
