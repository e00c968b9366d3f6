//! `[resource.NAME]`: a text or a file that clients can read.

use std::path::Path;

use longhaul::Resource;
use longhaul_wire::resource::{URI_BYTES_MAX, is_uri};

use super::content::{self, ContentSource};
use super::section::NamedSection;

/// A resource that the config file declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResourceConfig {
    pub(super) name: String,
    pub(crate) uri: String,
    title: Option<String>,
    description: Option<String>,
    mime_type: Option<String>,
    pub(super) content: ContentSource,
}

pub(super) fn read(section: &NamedSection<'_>, name: &str, folder: &Path) -> Option<ResourceConfig> {
    let uri = section.non_blank_text("uri");
    if !section.has("uri") {
        section.missing("uri", "add one, such as uri = \"docs://readme\"");
    }
    match &uri {
        Some(uri) if uri.len() > URI_BYTES_MAX => {
            section.wrong("uri", format!("has {} bytes", uri.len()), format!("use at most {URI_BYTES_MAX}"));
        }
        Some(uri) if !is_uri(uri) => {
            let remedy = "write a scheme, a colon and the rest without spaces, such as \"docs://readme\"";
            section.wrong("uri", format!("is {uri:?}"), remedy);
        }
        _ => {}
    }
    let (title, description, mime_type) =
        (section.non_blank_text("title"), section.non_blank_text("description"), section.non_blank_text("mime_type"));
    let content = content::read(section, folder);
    Some(ResourceConfig { name: name.to_owned(), uri: uri?, title, description, mime_type, content: content? })
}

impl ResourceConfig {
    /// Makes the resource that the server offers.
    pub(crate) fn resource(&self) -> Resource {
        let mut resource = match &self.content {
            ContentSource::Text(text) => Resource::text(&self.uri, text),
            ContentSource::File(path) => Resource::file(&self.uri, path),
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
