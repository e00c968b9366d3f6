//! Follows the config file while the server runs: adds, changes and removes tools, prompts and resources when the file
//! changes. A file with a mistake changes nothing.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use longhaul::{FileCheck, FollowedFile, FollowedFileError, ServerHandle};

use super::limits::Limits;
use super::prompt::PromptConfig;
use super::resource::ResourceConfig;
use super::tool::ToolConfig;
use super::{CONFIG_FILE_BYTES_MAX, Config, command_tool, folder_of, parse};

/// How often the file is checked for changes.
const CONFIG_FILE_LOOK_TIME_MAX: Duration = Duration::from_secs(1);

/// Counts the entries that were added, changed or removed.
#[derive(Default)]
struct Changes(usize);

impl Changes {
    fn count(&mut self, name: &str, done: Result<(), longhaul::Error>) {
        match done {
            Ok(()) => self.0 += 1,
            Err(error) => tracing::error!(name, %error, "a change of the config file could not be applied"),
        }
    }
}

/// The entries of `old` whose names are not in `new`.
fn removed<'a, T>(old: &'a [T], new: &'a [T], name: impl Fn(&T) -> &str) -> impl Iterator<Item = &'a T> {
    old.iter().filter(move |old| !new.iter().any(|new| name(new) == name(old)))
}

/// Applies the changes of a config file to a running server.
pub(crate) struct ConfigFollower {
    file: Arc<FollowedFile>,
    handle: ServerHandle,
    /// The limits that the server was started with. They also apply to tools that are added later.
    limits: Limits,
    tools: Vec<ToolConfig>,
    /// Those of the tools that could not take the place of another version yet, because that one has tasks.
    waiting_tools: Vec<ToolConfig>,
    prompts: Vec<PromptConfig>,
    resources: Vec<ResourceConfig>,
    /// The settings of the file when it was last applied. A change of them takes effect at the next start of the server.
    settings: String,
    /// The content that was read last.
    content: Vec<u8>,
    /// Why the file could not be read at the last check.
    unreadable: Option<String>,
}

impl ConfigFollower {
    /// Follows the file from which this configuration was read.
    pub(crate) fn new(path: &Path, config: &Config, settings_at_start: String, handle: ServerHandle) -> Option<Self> {
        let (file, content) = match FollowedFile::open(path, CONFIG_FILE_BYTES_MAX) {
            Ok(opened) => opened,
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "changes of the config file are not followed");
                return None;
            }
        };
        Some(Self {
            file: Arc::new(file),
            handle,
            limits: config.limits.clone(),
            tools: config.tools.clone(),
            waiting_tools: Vec::new(),
            prompts: config.prompts.clone(),
            resources: config.resources.clone(),
            settings: settings_at_start,
            content,
            unreadable: None,
        })
    }

    /// The settings that a server reads only at its start, as a text, so that two configurations can be compared.
    pub(crate) fn settings(config: &Config) -> String {
        format!("{:?} {:?} {:?}", config.server, config.limits, config.clients_without_tasks)
    }

    /// Checks the file regularly. Does not return: the caller aborts it when the server stops.
    pub(crate) async fn follow(mut self) {
        // The file may have changed since the configuration was read: a process that passes a client on reads it when it
        // starts, and may become the server much later.
        let content = self.content.clone();
        self.take(&content).await;
        loop {
            tokio::time::sleep(CONFIG_FILE_LOOK_TIME_MAX).await;
            let file = Arc::clone(&self.file);
            match tokio::task::spawn_blocking(move || file.check()).await {
                Ok(FileCheck::Read(content)) if content != self.content => {
                    self.take(&content).await;
                    self.content = content;
                }
                Ok(FileCheck::Read(_)) => self.unreadable = None,
                Ok(FileCheck::Failed(error)) => self.fail_to_read(&error),
                // The file is unchanged, or the runtime shuts down.
                Ok(_) | Err(_) => {}
            }
            self.put_waiting_tools().await;
        }
    }

    /// Tries again to put the tools that wait for the tasks of another version.
    async fn put_waiting_tools(&mut self) {
        for tool in std::mem::take(&mut self.waiting_tools) {
            match self.handle.put_tool(command_tool::tool(tool.clone(), &self.limits)).await {
                Ok(()) => tracing::info!(name = tool.name, "a changed tool of the config file was applied"),
                Err(_) => self.waiting_tools.push(tool),
            }
        }
    }

    /// Applies a new content of the file.
    async fn take(&mut self, content: &[u8]) {
        self.unreadable = None;
        let text = match std::str::from_utf8(content) {
            Ok(text) => text,
            Err(error) => return self.fail(&error.to_string()),
        };
        // A program that rewrites the file may truncate it first, and then be slow or find no space to write.
        if text.trim().is_empty() {
            return self.fail("it is empty; to offer nothing, write a comment into it");
        }
        let config = match parse(text, &folder_of(self.file.path())) {
            Ok(config) => config,
            Err(problems) => {
                let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
                return self.fail(&lines.join("\n"));
            }
        };
        self.offer(&config).await;
        let new_settings = Self::settings(&config);
        if new_settings != self.settings {
            tracing::warn!("the config file has other settings of the server; they take effect at its next start");
            self.settings = new_settings;
        }
        (self.tools, self.prompts, self.resources) = (config.tools, config.prompts, config.resources);
    }

    /// Offers the tools, prompts and resources of a new configuration in place of the old ones.
    async fn offer(&mut self, config: &Config) {
        let (handle, limits) = (&self.handle, &self.limits);
        let mut changes = Changes::default();
        for old in removed(&self.tools, &config.tools, |tool| &tool.name) {
            changes.count(&old.name, handle.remove_tool(&old.name).await.map(drop));
        }
        self.waiting_tools.retain(|tool| config.tools.contains(tool));
        for tool in config.tools.iter().filter(|tool| !self.tools.contains(tool)) {
            let put = handle.put_tool(command_tool::tool(tool.clone(), limits)).await;
            if let Err(longhaul::Error::Change(cause)) = put {
                tracing::warn!(name = tool.name, %cause, "a changed tool of the config file is not applied yet");
                self.waiting_tools.push(tool.clone());
            } else {
                changes.count(&tool.name, put);
            }
        }
        for old in removed(&self.prompts, &config.prompts, |prompt| &prompt.name) {
            changes.count(&old.name, handle.remove_prompt(&old.name).await.map(drop));
        }
        for prompt in config.prompts.iter().filter(|prompt| !self.prompts.contains(prompt)) {
            changes.count(&prompt.name, handle.put_prompt(prompt.prompt()).await);
        }
        for old in removed(&self.resources, &config.resources, |resource| &resource.uri) {
            changes.count(&old.uri, handle.remove_resource(&old.uri).await.map(drop));
        }
        for resource in config.resources.iter().filter(|resource| !self.resources.contains(resource)) {
            let was_offered = self.resources.iter().any(|old| old.uri == resource.uri);
            changes.count(&resource.uri, handle.put_resource(resource.resource()).await);
            if was_offered {
                handle.resource_updated(&resource.uri);
            }
        }
        if changes.0 > 0 {
            tracing::info!(changes = changes.0, "the config file has changed, and its changes were applied");
        }
    }

    /// Logs why the file cannot be used. Each content is applied only once, so its mistakes are logged once.
    fn fail(&self, cause: &str) {
        let file = self.file.path().display();
        tracing::error!(%file, "the config file cannot be used; the server goes on as it was:\n{cause}");
    }

    /// Logs that the file cannot be read, unless that was logged at the last check, too.
    fn fail_to_read(&mut self, error: &FollowedFileError) {
        let cause = match error {
            FollowedFileError::Read(error) if error.kind() == io::ErrorKind::NotFound => {
                "it was removed or renamed; put it back, or restart the server with another file".to_owned()
            }
            other => other.to_string(),
        };
        if self.unreadable.as_ref() != Some(&cause) {
            self.fail(&cause);
            self.unreadable = Some(cause);
        }
    }
}
