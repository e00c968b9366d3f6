//! The config file of `longhaul serve`: tools that run commands, prompts, resources, and the settings of the server.
//!
//! - `keys`: every key, `section`: how tables are read, `unit`: times and sizes, `problem`: what is wrong, and where.
//! - `server`, `limits`, `clients`, `tool` with `argument` and `template`: one file per part of the config file.
//! - `prompt` and `resource`, with their `content`.
//! - `command_tool`: a tool of the file as a tool of the server; `message`: what its command can say while it runs.
//! - `missing`: what the file names and this machine does not have.
//! - `follow`: changes of the file while the server runs.
//! - `example`, `host`: what `longhaul config new` and `longhaul config host` print.

mod argument;
#[cfg(test)]
mod bad_files;
pub(crate) mod clients;
pub(crate) mod command_tool;
mod content;
#[cfg(test)]
mod documented;
pub(crate) mod example;
pub(crate) mod follow;
pub mod host;
pub(crate) mod keys;
pub(crate) mod limits;
mod message;
mod missing;
pub mod problem;
pub(crate) mod prompt;
pub(crate) mod resource;
pub(crate) mod section;
pub(crate) mod server;
mod template;
pub(crate) mod tool;
pub(crate) mod unit;

use std::io::Read as _;
use std::path::{Path, PathBuf};

use longhaul::TicketNames;
use toml::de::{DeTable, DeValue};

use self::clients::ClientsWithoutTasks;
use self::limits::Limits;
use self::problem::{Problem, Problems};
use self::prompt::PromptConfig;
use self::resource::ResourceConfig;
use self::section::{NamedSection, article};
use self::server::ServerConfig;
use self::tool::ToolConfig;

/// The maximum size of a config file.
const CONFIG_FILE_BYTES_MAX: u64 = 1 << 20;

/// The content of a config file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Config {
    pub(crate) server: ServerConfig,
    pub(crate) limits: Limits,
    pub(crate) clients_without_tasks: ClientsWithoutTasks,
    pub(crate) tools: Vec<ToolConfig>,
    pub(crate) prompts: Vec<PromptConfig>,
    pub(crate) resources: Vec<ResourceConfig>,
}

/// Why a config file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("the config file {path} cannot be read: {cause}")]
    Read { path: String, cause: std::io::Error },
    #[error("the config file {path} is not UTF-8 in line {line}; save it as UTF-8")]
    NotText { path: String, line: usize },
    #[error("the config file {path} has more than {CONFIG_FILE_BYTES_MAX} bytes")]
    TooLarge { path: String },
    #[error("the config file {path} cannot be used:\n{}", .problems.iter().map(|problem| format!("  {problem}")).collect::<Vec<_>>().join("\n"))]
    Wrong { path: String, problems: Vec<Problem> },
}

/// Reads a config file.
pub(crate) fn load(path: &Path) -> Result<Config, ConfigError> {
    check(path).map(|(config, _)| config)
}

/// Reads a config file, and what it names and this machine does not have.
pub(crate) fn check(path: &Path) -> Result<(Config, Vec<Problem>), ConfigError> {
    let shown = || path.display().to_string();
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(CONFIG_FILE_BYTES_MAX + 1).read_to_end(&mut bytes));
    read.map_err(|cause| ConfigError::Read { path: shown(), cause })?;
    if bytes.len() as u64 > CONFIG_FILE_BYTES_MAX {
        return Err(ConfigError::TooLarge { path: shown() });
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        ConfigError::NotText { path: shown(), line: before.split(|byte| *byte == b'\n').count() }
    })?;
    let config = parse(&text, &folder_of(path)).map_err(|problems| ConfigError::Wrong { path: shown(), problems })?;
    let missing = missing::find(&text, &config);
    Ok((config, missing))
}

/// The folder that relative paths in the file start from.
pub(crate) fn folder_of(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    absolute.parent().map_or_else(PathBuf::new, Path::to_owned)
}

/// Reads the text of a config file. Relative paths in it start from `folder`.
pub(crate) fn parse(text: &str, folder: &Path) -> Result<Config, Vec<Problem>> {
    let problems = Problems::of(text);
    let root = match DeTable::parse(text) {
        Ok(root) => root,
        Err(error) => {
            let at = error.span().unwrap_or_default();
            let what = format!("this is not TOML: {}", error.message().replace('\n', ", "));
            problems.add(&at, &key_at(text, at.start), what, "correct the line; https://toml.io describes the format");
            return Err(problems.into_sorted());
        }
    };
    let config = read(&problems, root.get_ref(), folder);
    if problems.is_empty() { Ok(config) } else { Err(problems.into_sorted()) }
}

fn read<'a>(problems: &'a Problems<'a>, table: &'a DeTable<'a>, folder: &Path) -> Config {
    let root = NamedSection::open(problems, table, "", 0..0, keys::ROOT);
    let server = server::read(&root, folder);
    let limits = limits::read(&root);
    let clients_without_tasks = clients::read(&root);
    let tools = read_tables(&root, "tool", keys::TOOL, |section, name| tool::read(section, name, folder));
    let prompts = read_tables(&root, "prompt", keys::PROMPT, |section, name| prompt::read(section, name, folder));
    let resources: Vec<(ResourceConfig, _)> = read_tables(&root, "resource", keys::RESOURCE, |section, name| {
        Some((resource::read(section, name, folder)?, (section.path.clone(), section.span.clone())))
    });
    for (index, (resource, (path, span))) in resources.iter().enumerate() {
        if resources[..index].iter().any(|(other, _)| other.uri == resource.uri) {
            let what = format!("has the URI {:?} of another resource", resource.uri);
            problems.add(span, path, what, "give each resource a URI of its own");
        }
    }
    let resources = resources.into_iter().map(|(resource, _)| resource).collect();
    // A tool of the file may have the default name of a ticket tool: the ticket tool then gets another name. A name that
    // the file sets for a ticket tool must not be the name of a tool of the file.
    let usual = TicketNames::default();
    for ((key, name), (_, usual)) in
        clients::names_by_key(&clients_without_tasks.names).into_iter().zip(clients::names_by_key(&usual))
    {
        if name != usual && tools.iter().any(|tool| tool.name == *name) {
            let path = format!("clients_without_tasks.tools.{key}");
            let at = root.entry("clients_without_tasks").map_or(0..0, toml::Spanned::span);
            problems.add(&at, &path, format!("is {name:?}, which is a tool of this file"), "choose another name");
        }
    }
    Config { server, limits, clients_without_tasks, tools, prompts, resources }
}

/// Reads all tables `[kind.NAME]`.
fn read_tables<'a, T>(
    root: &NamedSection<'a>,
    kind: &str,
    keys: &'static [section::Key],
    read: impl Fn(&NamedSection<'a>, &str) -> Option<T>,
) -> Vec<T> {
    let problems = root.problems();
    let mut all = Vec::new();
    for (name, span, entry) in root.members(kind) {
        let path = root.key_path(kind);
        let path = format!("{path}.{}", if name.contains(['.', ' ']) { format!("{name:?}") } else { name.to_owned() });
        let DeValue::Table(table) = entry.get_ref() else {
            let what = format!("is {}", article(entry.get_ref().type_str()));
            problems.add(&entry.span(), &path, what, format!("write a table, which begins with [{kind}.{name}]"));
            continue;
        };
        all.extend(read(&NamedSection::open(problems, table, &path, span, keys), name));
    }
    all
}

/// The key in the line where the text stops being TOML: what precedes `=`, or the header of a table.
fn key_at(text: &str, at: usize) -> String {
    let start = text.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |end| end + 1);
    let line = text.get(start..).unwrap_or_default().lines().next().unwrap_or_default();
    let key = line.split('=').next().unwrap_or_default().trim();
    key.trim_matches(['[', ']', ' ']).to_owned()
}
