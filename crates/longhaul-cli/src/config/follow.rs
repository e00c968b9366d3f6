//! Following the config file while the server runs: its tools are added, changed and removed. A file that is wrong changes
//! nothing.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use longhaul::{FileCheck, FollowedFile, ServerHandle};

use super::limits::Limits;
use super::tool::ToolConfig;
use super::{CONFIG_FILE_BYTES_MAX, Config, command_tool, folder_of, parse};

/// How often the file is checked for changes.
const CONFIG_FILE_LOOK_TIME_MAX: Duration = Duration::from_secs(1);

/// A config file whose tools a server has.
pub(crate) struct ConfigFollower {
    file: Arc<FollowedFile>,
    handle: ServerHandle,
    /// Those of the start: they hold until the next one.
    limits: Limits,
    tools: Vec<ToolConfig>,
    /// The rest of the file, which takes effect at the next start.
    settings: String,
    content: Vec<u8>,
    /// What was logged last.
    error: Option<String>,
}

impl ConfigFollower {
    /// Follows the file from which this configuration was read.
    pub(crate) fn new(path: &Path, config: &Config, settings_at_start: String, handle: ServerHandle) -> Option<Self> {
        // The content may be newer than the configuration, so the first check takes it.
        let (file, _) = match FollowedFile::open(path, CONFIG_FILE_BYTES_MAX) {
            Ok(opened) => opened,
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "changes of the config file are not followed");
                return None;
            }
        };
        let tools = config.tools.clone();
        Some(Self {
            file: Arc::new(file),
            handle,
            limits: config.limits.clone(),
            tools,
            settings: settings_at_start,
            content: Vec::new(),
            error: None,
        })
    }

    /// What of a file is read only at a start, to compare with.
    pub(crate) fn settings(config: &Config) -> String {
        format!("{:?} {:?} {:?}", config.server, config.limits, config.clients_without_tasks)
    }

    /// Follows until the server ends.
    pub(crate) async fn follow(mut self) {
        loop {
            tokio::time::sleep(CONFIG_FILE_LOOK_TIME_MAX).await;
            let file = Arc::clone(&self.file);
            match tokio::task::spawn_blocking(move || file.check()).await {
                Ok(FileCheck::Read(content)) if content != self.content => {
                    self.take(&content).await;
                    self.content = content;
                }
                Ok(FileCheck::Failed(error)) => self.fail(&error.to_string()),
                // It fails only when the process ends.
                Ok(_) | Err(_) => {}
            }
        }
    }

    async fn take(&mut self, content: &[u8]) {
        let text = match std::str::from_utf8(content) {
            Ok(text) => text,
            Err(error) => return self.fail(&error.to_string()),
        };
        let config = match parse(text, &folder_of(self.file.path())) {
            Ok(config) => config,
            Err(problems) => {
                let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
                return self.fail(&lines.join("\n"));
            }
        };
        self.error = None;
        let new_settings = Self::settings(&config);
        if new_settings != self.settings {
            tracing::warn!("the config file has other settings of the server; they take effect at its next start");
            self.settings = new_settings;
        }
        self.change_tools(config.tools).await;
    }

    async fn change_tools(&mut self, tools: Vec<ToolConfig>) {
        let (mut changed, mut removed) = (0_usize, 0_usize);
        for old in &self.tools {
            if !tools.iter().any(|tool| tool.name == old.name) {
                match self.handle.remove_tool(&old.name).await {
                    Ok(_) => removed += 1,
                    Err(error) => tracing::error!(tool = old.name, %error, "a tool cannot be removed"),
                }
            }
        }
        for tool in tools.iter().filter(|tool| !self.tools.contains(tool)) {
            match self.handle.put_tool(command_tool::tool(tool.clone(), &self.limits)).await {
                Ok(()) => changed += 1,
                Err(error) => tracing::error!(tool = tool.name, %error, "a tool cannot be changed"),
            }
        }
        if changed + removed > 0 {
            tracing::info!(changed, removed, "the config file has changed, and its tools were taken over");
        }
        self.tools = tools;
    }

    /// Logs an error, unless it was the last one that was logged.
    fn fail(&mut self, cause: &str) {
        if self.error.as_deref() != Some(cause) {
            let file = self.file.path().display();
            tracing::error!(%file, "the config file cannot be used; the server goes on as it was:\n{cause}");
            self.error = Some(cause.to_owned());
        }
    }
}
