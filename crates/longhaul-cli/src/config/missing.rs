//! Warns of programs and folders that a valid config file names and this machine does not have. These are not errors,
//! because they may exist when a tool is called.

use std::ffi::OsString;
use std::path::Path;

use rustix::fs::{Access, access};
use serde_json::Map;
use toml::de::{DeTable, DeValue};

use super::command_tool::program_path;
use super::problem::{Problem, Problems};
use super::tool::{CommandLine, ToolConfig};

/// The programs and folders that are missing, with their places in the text of the file.
pub(super) fn find(text: &str, tools: &[ToolConfig]) -> Vec<Problem> {
    let problems = Problems::of(text);
    let Ok(root) = DeTable::parse(text) else { return Vec::new() };
    let Some(DeValue::Table(sections)) = root.get_ref().get("tool").map(toml::Spanned::get_ref) else {
        return Vec::new();
    };
    for tool in tools {
        let Some(DeValue::Table(section)) = sections.get(tool.name.as_str()).map(toml::Spanned::get_ref) else {
            continue;
        };
        let add = |key: &str, what: String, remedy: &str| {
            let at = section.get(key).map_or(0..0, toml::Spanned::span);
            problems.add(&at, &format!("tool.{}.{key}", tool.name), what, remedy);
        };
        if !tool.directory.is_dir() {
            let what = format!("is {}, which is not a folder", tool.directory.display());
            add("directory", what, "make the folder, or correct the path");
        } else if let Some((what, remedy)) = missing_program(tool) {
            add("command", what, remedy);
        }
    }
    problems.into_sorted()
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
