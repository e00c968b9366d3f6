//! Compares the table "Where a rule is" of `ARCHITECTURE.md` with the sources.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};

use crate::root;

#[test]
fn the_table_names_files_and_functions_that_exist() -> anyhow::Result<()> {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md"))?;
    let section = page.split("\n## ").find(|section| section.starts_with("Where a rule is"));
    let section = section.context("ARCHITECTURE.md has no section \"Where a rule is\"")?;
    let mut paths = 0;
    for row in section.lines().filter(|line| line.starts_with("| ")) {
        for (path, rest) in paths_of(row) {
            let source = source(path).with_context(|| format!("ARCHITECTURE.md names {path}, which does not exist"))?;
            let text = text_of(&source)?;
            for name in names_after(rest) {
                ensure!(text.contains(name), "ARCHITECTURE.md says that {name} is in {path}, and it is not");
            }
            paths += 1;
        }
    }
    ensure!(paths > 100, "only {paths} files were found in the table: it has another form than this test reads");
    Ok(())
}

/// The paths of a row, such as `wire/route.rs`, each with the text that follows it.
fn paths_of(row: &str) -> impl Iterator<Item = (&str, &str)> {
    row.match_indices('`').filter_map(|(at, _)| {
        let (quoted, rest) = row[at + 1..].split_once('`')?;
        let is_path = quoted.contains('/') && (quoted.ends_with('/') || quoted.split('.').next_back() == Some("rs"));
        is_path.then_some((quoted, rest))
    })
}

/// The names in parentheses right after a path: `` (`ttl_ms`, `due_at`) ``.
fn names_after(rest: &str) -> impl Iterator<Item = &str> {
    let inside = rest.strip_prefix(" (").and_then(|rest| rest.split_once(')')).map_or("", |(inside, _)| inside);
    inside.split(", ").filter_map(|part| part.strip_prefix('`')?.strip_suffix('`'))
}

/// The file or folder in the crates that a short path stands for; `None` if there is none.
fn source(path: &str) -> Option<PathBuf> {
    let (crate_name, inside) = path.split_once('/')?;
    let folder = if crate_name == "longhaul" { crate_name.to_owned() } else { format!("longhaul-{crate_name}") };
    let source = root().join("crates").join(folder).join("src").join(inside);
    source.exists().then_some(source)
}

/// The text of a file, or of all files in a folder.
fn text_of(path: &Path) -> anyhow::Result<String> {
    if path.is_file() {
        return Ok(fs::read_to_string(path)?);
    }
    fs::read_dir(path)?.map(|entry| text_of(&entry?.path())).collect()
}
