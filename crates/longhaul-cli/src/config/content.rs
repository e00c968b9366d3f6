//! The content of a prompt or resource: a text of the config file, or another file.

use std::path::{Path, PathBuf};

use super::section::NamedSection;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ContentSource {
    Text(String),
    /// The file is read for every request.
    File(PathBuf),
}

/// Reads `text` or `file`, of which there must be exactly one.
pub(super) fn read(section: &NamedSection<'_>, folder: &Path) -> Option<ContentSource> {
    match (section.non_blank_text("text"), section.non_blank_text("file")) {
        (Some(_), Some(_)) => {
            section.wrong("file", "is a second content beside `text`", "remove one of them");
            None
        }
        (Some(text), None) => Some(ContentSource::Text(text)),
        (None, Some(path)) => Some(ContentSource::File(folder.join(path))),
        (None, None) => {
            if !section.has("text") && !section.has("file") {
                section.missing("text", "add text = \"…\", or file = \"PATH\"");
            }
            None
        }
    }
}
