//! Warns of programs, folders and files that a valid config file names and this machine does not have. These are not errors,
//! because they may exist when a tool is called or a file is read.

use std::ffi::OsString;
use std::path::Path;

use rustix::fs::{Access, access};
use serde_json::Map;
use toml::de::{DeTable, DeValue};

use super::Config;
use super::command_tool::program_path;
use super::content::ContentSource;
use super::problem::{Problem, Problems};
use super::tool::{CommandLine, ToolConfig};

/// What is missing, with its place in the text of the file.
pub(super) fn find(text: &str, config: &Config) -> Vec<Problem> {
    let problems = Problems::of(text);
    let Ok(root) = DeTable::parse(text) else { return Vec::new() };
    let add = |kind: &str, name: &str, key: &str, what: String, remedy: &str| {
        let section = member(root.get_ref(), kind).and_then(DeValue::as_table).and_then(|table| member(table, name));
        let value = section.and_then(DeValue::as_table).and_then(|section| section.get(key));
        let at = value.map_or(0..0, toml::Spanned::span);
        problems.add(&at, &format!("{kind}.{name}.{key}"), what, remedy);
    };
    for tool in &config.tools {
        if !tool.directory.is_dir() {
            let what = format!("is {}, which is not a folder", tool.directory.display());
            add("tool", &tool.name, "directory", what, "make the folder, or correct the path");
        } else if let Some((what, remedy)) = missing_program(tool) {
            add("tool", &tool.name, "command", what, remedy);
        }
    }
    let prompts = config.prompts.iter().map(|prompt| ("prompt", &prompt.name, &prompt.content));
    let resources = config.resources.iter().map(|resource| ("resource", &resource.name, &resource.content));
    for (kind, name, content) in prompts.chain(resources) {
        if let ContentSource::File(path) = content
            && !path.is_file()
        {
            let what = format!("is {}, which is not a file", path.display());
            add(kind, name, "file", what, "make the file, or correct the path");
        }
    }
    problems.into_sorted()
}

fn member<'a, 'i>(table: &'a DeTable<'i>, name: &str) -> Option<&'a DeValue<'i>> {
    table.get(name).map(toml::Spanned::get_ref)
}

fn missing_program(tool: &ToolConfig) -> Option<(String, &'static str)> {
    let CommandLine::Program(parts) = &tool.command else { return None };
    let program = parts.first()?.first()?.fill(&Map::new())?;
    let path = program_path(&program, &tool.directory);
    if program.contains('/') {
        let what = format!("runs {}, which is not a program that can be run", path.display());
        return (!can_run(Path::new(&path))).then_some((what, "correct the path, or make the file executable"));
    }
    // If `PATH` contains arguments, it is known only when the tool is called, and nothing is reported.
    let folders = match tool.env.iter().find(|(name, _)| name == "PATH") {
        Some((_, template)) => OsString::from(template.fill(&Map::new())?),
        None => std::env::var_os("PATH")?,
    };
    let is_found = std::env::split_paths(&folders).any(|folder| can_run(&tool.directory.join(folder).join(&program)));
    let what = format!("runs {program:?}, which is not in PATH");
    (!is_found).then_some((what, "install it, correct the name, or write the whole path"))
}

fn can_run(path: &Path) -> bool {
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}
