//! Puts faults into a copy of the code. The simulator must find each, which shows that its laws detect faults.
//!
//! Each mutation of the [table](table::MUTATIONS) is written into a copy of the crates that the simulator consists
//! of. The simulator is built there and plays histories until a law is violated.

mod table;

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

pub use self::table::{MUTATIONS, Mutation};

/// The crates that the simulator is made of.
const CRATES: [&str; 4] = ["longhaul-task", "longhaul-store", "longhaul-engine", "longhaul-sim"];

/// Histories that the copy must pass without a mutation before the mutations are tried.
const SOUND_HISTORIES: u64 = 200;

/// How a mutation was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detection {
    pub histories: u64,
    pub broken: String,
}

/// The result for one mutation.
#[derive(Debug)]
pub struct MutationResult {
    pub mutation: Mutation,
    /// `None` if it was not found.
    pub found: Option<Detection>,
}

/// Why mutations could not be tried.
#[derive(Debug, thiserror::Error)]
pub enum MutationError {
    /// The code has changed, so the table must be changed, too.
    #[error("the mutation {name} does not apply: the text that it replaces occurs {times} times in {file}, not once")]
    WrongMatchCount { name: &'static str, file: &'static str, times: usize },
    /// The copy does not build.
    #[error("{what} does not build:\n{output}")]
    Build { what: String, output: String },
    /// The copy violates a law without a mutation.
    #[error("without any mutation: {0}")]
    Unsound(String),
    /// A file could not be read or written, or a command could not be run.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Tries every mutation of the table, or only those in `only`, on a copy of the workspace. `tell` gets each result at once.
pub fn run(
    workspace_root: &Path,
    scratch_dir: &Path,
    only: &[String],
    seed: u64,
    histories: u64,
    mut tell: impl FnMut(&MutationResult),
) -> Result<Vec<MutationResult>, MutationError> {
    // All mutations are applied first, so that an outdated table is reported at once.
    for mutation in MUTATIONS {
        mutated(workspace_root, mutation)?;
    }
    let lab = MutationWorkspace::set_up(workspace_root, scratch_dir)?;
    let binary = lab.build("the copy without a mutation")?;
    if let Some(found) = hunt(&binary, seed, SOUND_HISTORIES)? {
        return Err(MutationError::Unsound(found.broken));
    }
    let mut hunts = Vec::new();
    for mutation in MUTATIONS.iter().filter(|mutation| only.is_empty() || only.iter().any(|only| only == mutation.name))
    {
        let file = lab.root.join(mutation.file);
        let sound = fs::read_to_string(&file)?;
        fs::write(&file, mutated(workspace_root, mutation)?)?;
        let binary = lab.build(mutation.name);
        fs::write(&file, sound)?;
        let hunt = MutationResult { mutation: *mutation, found: hunt(&binary?, seed, histories)? };
        tell(&hunt);
        hunts.push(hunt);
    }
    Ok(hunts)
}

/// The text of a mutated file.
fn mutated(root: &Path, mutation: &Mutation) -> Result<String, MutationError> {
    let Mutation { name, file, find, replace } = *mutation;
    let text = fs::read_to_string(root.join(file))?;
    match text.matches(find).count() {
        1 => Ok(text.replacen(find, replace, 1)),
        times => Err(MutationError::WrongMatchCount { name, file, times }),
    }
}

/// A copy of the parts of the workspace that the simulator needs.
struct MutationWorkspace {
    root: PathBuf,
    target: PathBuf,
}

impl MutationWorkspace {
    fn set_up(workspace_root: &Path, scratch_dir: &Path) -> Result<Self, MutationError> {
        let lab = Self { root: scratch_dir.join("copy"), target: scratch_dir.join("target") };
        if lab.root.exists() {
            fs::remove_dir_all(&lab.root)?;
        }
        fs::create_dir_all(&lab.root)?;
        let manifest = fs::read_to_string(workspace_root.join("Cargo.toml"))?;
        fs::write(lab.root.join("Cargo.toml"), only_crates(&manifest))?;
        fs::copy(workspace_root.join("Cargo.lock"), lab.root.join("Cargo.lock"))?;
        for name in CRATES {
            let (from, to) = (workspace_root.join("crates").join(name), lab.root.join("crates").join(name));
            fs::create_dir_all(&to)?;
            let manifest = fs::read_to_string(from.join("Cargo.toml"))?;
            fs::write(to.join("Cargo.toml"), without_section(&manifest, "[dev-dependencies]"))?;
            copy_all(&from.join("src"), &to.join("src"))?;
        }
        Ok(lab)
    }

    /// Builds the simulator with settings for a short build rather than a fast program.
    fn build(&self, what: &str) -> Result<PathBuf, MutationError> {
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .args(["build", "--quiet", "--release", "--offline", "--package", "longhaul-sim"])
            .current_dir(&self.root)
            .env("CARGO_TARGET_DIR", &self.target)
            .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1")
            .env("CARGO_PROFILE_RELEASE_INCREMENTAL", "true")
            .env("RUSTFLAGS", "-Awarnings")
            .output()?;
        if !output.status.success() {
            let output = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(MutationError::Build { what: what.to_owned(), output });
        }
        Ok(self.target.join("release").join("longhaul-sim").with_extension(env::consts::EXE_EXTENSION))
    }
}

/// Plays histories until a law is violated. `None` if all of them keep the laws.
fn hunt(binary: &Path, seed: u64, histories: u64) -> Result<Option<Detection>, MutationError> {
    let (seed, histories) = (seed.to_string(), histories.to_string());
    let output = Command::new(binary).args(["--seed", &seed, "--histories", &histories]).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let number = text.lines().find_map(|line| line.strip_prefix("found after ")?.split(' ').next()?.parse().ok());
    let broken = text.lines().find_map(|line| Some(line.split_once(" breaks a law: ")?.1.to_owned()));
    Ok(number.map(|histories| Detection { histories, broken: broken.unwrap_or_default() }))
}

fn copy_all(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_all(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// The manifest of the workspace, reduced to the crates in the copy.
fn only_crates(manifest: &str) -> String {
    let mut inside = false;
    let mut kept = String::new();
    for line in manifest.lines() {
        inside |= ["members", "default-members", "exclude"].iter().any(|list| line.starts_with(list));
        if !inside {
            kept.push_str(line);
            kept.push('\n');
        }
        if line.trim_end() == "[workspace]" {
            kept.push_str("members = [\"crates/*\"]\n");
        }
        inside &= !line.trim_end().ends_with(']');
    }
    kept
}

/// The manifest without this section.
fn without_section(manifest: &str, section: &str) -> String {
    let mut inside = false;
    let mut kept = String::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = line.trim_end() == section;
        }
        if !inside {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mutation_has_its_text_in_the_code_exactly_once() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for mutation in MUTATIONS {
            let text = mutated(&root, mutation).unwrap_or_else(|error| panic!("{error}"));
            assert_ne!(text, fs::read_to_string(root.join(mutation.file)).unwrap(), "{} does nothing", mutation.name);
        }
    }

    #[test]
    fn no_two_mutations_have_the_same_name() {
        let mut names: Vec<_> = MUTATIONS.iter().map(|mutation| mutation.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), MUTATIONS.len());
    }

    #[test]
    fn a_copy_names_only_the_crates_that_are_in_it() {
        let manifest = "[workspace]\nmembers = [\"crates/*\", \"x\"]\ndefault-members = [\n  \"a\",\n]\n\n[x]\n";
        assert_eq!(only_crates(manifest), "[workspace]\nmembers = [\"crates/*\"]\n\n[x]\n");
        let manifest = "[a]\nb = 1\n[dev-dependencies]\nc = 2\n[lints]\nworkspace = true\n";
        assert_eq!(without_section(manifest, "[dev-dependencies]"), "[a]\nb = 1\n[lints]\nworkspace = true\n");
    }
}
