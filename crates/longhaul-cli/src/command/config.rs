//! `longhaul config check|new|host`

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::config::host::{self, Host, ServerEntry};
use crate::config::{self, example};
use crate::exit::{self, CommandError};
use crate::output::{stderr_line, stdout_line, write_stdout_raw};

#[derive(Debug, Subcommand)]
#[command(after_help = exit::HELP)]
pub enum ConfigCommand {
    /// Say what is wrong with a config file: line, column, key, and what to do
    Check(CheckConfig),
    /// Write a commented example that works
    New(NewConfig),
    /// Print what to put into the configuration of a host, for stdio and for HTTP
    Host(HostConfig),
}

#[derive(Debug, Args)]
#[command(after_help = exit::HELP)]
pub struct CheckConfig {
    /// The config file
    file: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = exit::HELP)]
pub struct NewConfig {
    /// The file to write; it must not exist. `-` is standard output
    #[arg(default_value = "longhaul.toml")]
    file: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = exit::HELP)]
pub struct HostConfig {
    /// The host
    #[arg(value_enum)]
    host: Host,
    /// The config file that the server is started with
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The store that the server is started with
    #[arg(long, value_name = "URL", conflicts_with = "config")]
    store: Option<String>,
    /// The name of the server in the host
    #[arg(long, value_name = "NAME", default_value = "longhaul", value_parser = host::name)]
    name: String,
}

impl ConfigCommand {
    pub(super) fn run(self) -> Result<(), CommandError> {
        match self {
            Self::Check(check) => check.run(),
            Self::New(new) => new.run(),
            Self::Host(host) => host.run(),
        }
    }
}

impl CheckConfig {
    fn run(self) -> Result<(), CommandError> {
        let (config, missing) = config::check(&self.file)?;
        for problem in missing {
            stderr_line!("warning: {problem}");
        }
        let tools = config.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>().join(", ");
        let tools = if tools.is_empty() { "It has no tools.".to_owned() } else { format!("Its tools: {tools}.") };
        stdout_line!("{} is valid. {tools}", self.file.display());
        Ok(())
    }
}

impl NewConfig {
    fn run(self) -> Result<(), CommandError> {
        if self.file.as_os_str() == "-" {
            return write_stdout_raw(example::EXAMPLE.trim_end());
        }
        let made = OpenOptions::new().write(true).create_new(true).open(&self.file);
        let written = made.and_then(|mut file| file.write_all(example::EXAMPLE.as_bytes()));
        written.map_err(|cause| {
            let cause = match cause.kind() {
                io::ErrorKind::AlreadyExists => {
                    "there is a file of that name; choose another name, or remove the file first".to_owned()
                }
                io::ErrorKind::NotFound => "there is no such folder; make it first".to_owned(),
                _ => cause.to_string(),
            };
            CommandError::NewConfig { path: self.file.display().to_string(), cause }
        })?;
        stderr_line!("{0} is new. Serve it with `longhaul serve --config {0}`.", self.file.display());
        Ok(())
    }
}

impl HostConfig {
    fn run(self) -> Result<(), CommandError> {
        let program =
            std::env::current_exe().map_err(|error| CommandError::System("cannot find this program", error))?;
        let mut arguments = vec!["serve".to_owned(), "--stdio".to_owned()];
        let mut server = config::server::ServerConfig::default();
        if let Some(path) = &self.config {
            // A wrong file would fail in the host, which does not show why.
            server = config::load(path)?.server;
            let path =
                std::path::absolute(path).map_err(|error| CommandError::System("cannot find the file", error))?;
            arguments.extend(["--config".to_owned(), path.display().to_string()]);
        } else {
            arguments.extend(self.store.iter().flat_map(|store| ["--store".to_owned(), store.clone()]));
            arguments.extend(self.store.is_none().then(|| "--demo".to_owned()));
        }
        let address = server.listen.unwrap_or_else(super::serve::default_address);
        let url = format!("http://{address}/mcp");
        let entry = ServerEntry {
            program: &program,
            arguments,
            name: &self.name,
            url: &url,
            needs_token: server.token_file.is_some(),
        };
        write_stdout_raw(host::describe(self.host, &entry).trim_end())
    }
}
