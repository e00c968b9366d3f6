//! `[prompt.NAME]`: a text that clients can use.

use std::io;
use std::path::Path;

use longhaul::{Ctx, Failure, NoArgs, Prompt};
use longhaul_wire::tool::is_tool_name;

use super::content::{self, ContentSource};
use super::section::NamedSection;
use super::tool;

/// A prompt that the config file declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PromptConfig {
    pub(crate) name: String,
    title: Option<String>,
    description: Option<String>,
    pub(super) content: ContentSource,
}

pub(super) fn read(section: &NamedSection<'_>, name: &str, folder: &Path) -> Option<PromptConfig> {
    // Stricter than the protocol, because many hosts offer a prompt as a command of its name.
    if !is_tool_name(name) {
        let remedy = tool::name_remedy();
        section.problems().add(&section.span, &section.path, "cannot be the name of a prompt", remedy);
    }
    let (title, description) = (section.non_blank_text("title"), section.non_blank_text("description"));
    Some(PromptConfig { name: name.to_owned(), title, description, content: content::read(section, folder)? })
}

impl PromptConfig {
    /// Makes the prompt that the server offers.
    pub(crate) fn prompt(&self) -> Prompt {
        let content = self.content.clone();
        let mut prompt = Prompt::new(self.name.clone(), move |_: Ctx, _: NoArgs| {
            let content = content.clone();
            async move {
                match content {
                    ContentSource::Text(text) => Ok(text),
                    ContentSource::File(path) => read_text(&path).await.map_err(|error| {
                        // The cause may name files, so it is not sent to clients.
                        tracing::warn!(path = %path.display(), %error, "a prompt cannot be read");
                        Failure::tool("the file of the prompt cannot be read")
                    }),
                }
            }
        });
        if let Some(title) = &self.title {
            prompt = prompt.title(title);
        }
        if let Some(description) = &self.description {
            prompt = prompt.description(description);
        }
        prompt
    }
}

async fn read_text(path: &Path) -> io::Result<String> {
    let bytes = longhaul::read_regular_file(path).await?;
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}
