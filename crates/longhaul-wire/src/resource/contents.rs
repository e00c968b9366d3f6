//! The result of `resources/read`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use longhaul_task::Json;
use serde_json::value::RawValue;

use crate::content::{Content, ToolResult};
use crate::text;

/// One part of what a resource contains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceContent {
    body: Body,
    uri: Option<String>,
    mime_type: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Body {
    Text(String),
    /// In Base64.
    Blob(String),
}

impl ResourceContent {
    /// Text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { body: Body::Text(text.into()), uri: None, mime_type: None }
    }

    /// Bytes.
    pub fn blob(bytes: impl AsRef<[u8]>) -> Self {
        Self { body: Body::Blob(STANDARD.encode(bytes)), uri: None, mime_type: None }
    }

    /// Its own URI, if the read gives more than one resource. Without it the URI is that of the request.
    pub fn uri(mut self, uri: impl Into<String>) -> Self {
        self.uri = Some(uri.into());
        self
    }

    /// Its own type, instead of that of the declaration.
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }
}

/// What a read gives: usually one content.
///
/// ```
/// use longhaul_wire::resource::{ResourceContent, ResourceContents};
///
/// let contents = ResourceContents::new().with(ResourceContent::text("# 2026"));
/// assert_eq!(
///     contents.into_json("report://2026", Some("text/markdown")).as_str(),
///     r##"{"contents":[{"uri":"report://2026","mimeType":"text/markdown","text":"# 2026"}]}"##
/// );
/// ```
#[derive(Debug, Clone, Default)]
pub struct ResourceContents {
    contents: Vec<ResourceContent>,
}

impl ResourceContents {
    /// A result without contents yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a content.
    pub fn with(mut self, content: ResourceContent) -> Self {
        self.contents.push(content);
        self
    }

    /// The result as it is stored, for a request of this URI.
    pub fn into_json(self, uri: &str, mime_type: Option<&str>) -> Json {
        let bytes: usize = self.contents.iter().map(|content| content.bytes() + uri.len() + 96).sum();
        let mut out = String::with_capacity(bytes + 32);
        out.push_str("{\"contents\":");
        text::push_array(&mut out, &self.contents, |out, content| {
            out.push_str("{\"uri\":");
            text::push_str(out, content.uri.as_deref().unwrap_or(uri));
            if let Some(mime_type) = content.mime_type.as_deref().or(mime_type) {
                text::push_str_member(out, "mimeType", mime_type);
            }
            match &content.body {
                Body::Text(text) => text::push_str_member(out, "text", text),
                Body::Blob(base64) => text::push_str_member(out, "blob", base64),
            }
            out.push('}');
        });
        out.push('}');
        Json::from_text(out)
    }
}

/// The contents of a stored result as the result of a tool.
pub(crate) fn as_tool_result(body: &Json) -> Option<Json> {
    let contents = text::member(text::raw(body.as_str())?, "contents")?;
    let contents: Vec<&RawValue> = serde_json::from_str(contents.get()).ok()?;
    let blocks = contents.into_iter().map(Content::from_stored_resource);
    Some(blocks.fold(ToolResult::new(), ToolResult::with).into_json())
}

impl ResourceContent {
    fn bytes(&self) -> usize {
        match &self.body {
            Body::Text(text) => text.len(),
            Body::Blob(base64) => base64.len(),
        }
    }
}

impl From<ResourceContent> for ResourceContents {
    fn from(content: ResourceContent) -> Self {
        Self::new().with(content)
    }
}
