//! `[prompt.NAME]` and `[resource.NAME]`: texts and files that clients can read.

use std::io;
use std::path::{Path, PathBuf};

use longhaul::{Ctx, Failure, NoArgs, Prompt, Resource};

use super::section::NamedSection;

/// A prompt that the config file declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PromptConfig {
    pub(crate) name: String,
    title: Option<String>,
    description: Option<String>,
    content: Content,
}

/// A resource that the config file declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResourceConfig {
    name: String,
    pub(crate) uri: String,
    title: Option<String>,
    description: Option<String>,
    mime_type: Option<String>,
    content: Content,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Content {
    Text(String),
    /// The file is read for every request.
    File(PathBuf),
}

fn content(section: &NamedSection<'_>, folder: &Path) -> Option<Content> {
    match (section.non_blank_text("text"), section.non_blank_text("file")) {
        (Some(_), Some(_)) => {
            section.wrong("file", "is a second content beside `text`", "remove one of them");
            None
        }
        (Some(text), None) => Some(Content::Text(text)),
        (None, Some(path)) => Some(Content::File(folder.join(path))),
        (None, None) => {
            if !section.has("text") && !section.has("file") {
                section.missing("text", "add text = \"…\", or file = \"PATH\"");
            }
            None
        }
    }
}

pub(super) fn read_prompt(section: &NamedSection<'_>, name: &str, folder: &Path) -> Option<PromptConfig> {
    if !super::tool::is_name(name) {
        let remedy = super::tool::NAME_CHARACTERS;
        section.problems().add(&section.span, &section.path, "cannot be the name of a prompt", remedy);
    }
    let (title, description) = (section.non_blank_text("title"), section.non_blank_text("description"));
    Some(PromptConfig { name: name.to_owned(), title, description, content: content(section, folder)? })
}

pub(super) fn read_resource(section: &NamedSection<'_>, name: &str, folder: &Path) -> Option<ResourceConfig> {
    let uri = section.non_blank_text("uri");
    if !section.has("uri") {
        section.missing("uri", "add one, such as uri = \"docs://readme\"");
    }
    if let Some(uri) = &uri {
        let scheme = uri.split_once(':').filter(|(scheme, rest)| {
            let is_word = scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
            !scheme.is_empty() && is_word && !rest.is_empty() && !uri.contains(char::is_whitespace)
        });
        if scheme.is_none() {
            section.wrong(
                "uri",
                format!("is {uri:?}"),
                "write a scheme, a colon and the rest, such as \"docs://readme\"",
            );
        }
    }
    let (title, description, mime_type) =
        (section.non_blank_text("title"), section.non_blank_text("description"), section.non_blank_text("mime_type"));
    let content = content(section, folder);
    Some(ResourceConfig { name: name.to_owned(), uri: uri?, title, description, mime_type, content: content? })
}

impl PromptConfig {
    /// Makes the prompt that the server offers.
    pub(crate) fn prompt(&self) -> Prompt {
        let content = self.content.clone();
        let mut prompt = Prompt::new(self.name.clone(), move |_: Ctx, _: NoArgs| {
            let content = content.clone();
            async move {
                match content {
                    Content::Text(text) => Ok(text),
                    Content::File(path) => read_regular_file(&path).await.map_err(|error| {
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

/// Reads a file, unless it is something like a pipe, which could keep the reader waiting forever.
async fn read_regular_file(path: &Path) -> io::Result<String> {
    if !tokio::fs::metadata(path).await?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    tokio::fs::read_to_string(path).await
}

impl ResourceConfig {
    /// Makes the resource that the server offers.
    pub(crate) fn resource(&self) -> Resource {
        let mut resource = match &self.content {
            Content::Text(text) => Resource::text(&self.uri, text),
            Content::File(path) => Resource::file(&self.uri, path),
        }
        .name(&self.name);
        if let Some(title) = &self.title {
            resource = resource.title(title);
        }
        if let Some(description) = &self.description {
            resource = resource.description(description);
        }
        if let Some(mime_type) = &self.mime_type {
            resource = resource.mime_type(mime_type);
        }
        resource
    }
}
