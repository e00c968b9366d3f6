//! Tasks that go on after a kill of the server: steps, attempts, questions and subtasks.

mod attempts;
mod family;
#[path = "../kit/mod.rs"]
mod kit;
mod questions;
mod steps;

use std::path::Path;

/// The lines of a file, none if there is no such file.
fn lines(file: &Path) -> Vec<String> {
    std::fs::read_to_string(file).unwrap_or_default().lines().map(str::to_owned).collect()
}
