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

use longhaul_testkit::StatelessClient;
use serde_json::Value;

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

    /// Starts a server with the config file, and connects a client with these capabilities.
    async fn serve(&self, capabilities: Value) -> (kit::ServerProcess, StatelessClient) {
        let (server, mut client) = self.launch().start_with_client().await;
        client.capabilities = capabilities;
        (server, client)
    }

    /// Makes a named pipe, whose reader waits until a test writes to it.
    fn make_fifo(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        path
    }
}

/// The IDs of the processes that have this variable (`NAME=value`) in their environment.
fn processes_with_variable(variable: &str) -> Vec<String> {
    let has_it = |pid: &String| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == variable.as_bytes())
    };
    longhaul_testkit::names(Path::new("/proc")).into_iter().filter(has_it).collect()
}
