//! What a tool answers with.
//!
//! ```
//! use longhaul_wire::content::{Content, ToolResult};
//!
//! let body = ToolResult::new().with(Content::text("42")).into_json();
//! assert_eq!(body.as_str(), r#"{"content":[{"type":"text","text":"42"}]}"#);
//! ```

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use longhaul_task::Json;
use serde_json::value::RawValue;

use crate::text;

/// The result of a tool call in the making. It is no generation's: each adds what it must when it is sent.
#[derive(Debug, Clone, Default)]
pub struct ToolResult {
    blocks: Vec<Content>,
    structured: Option<Json>,
    is_error: bool,
}

impl ToolResult {
    /// A result without content yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A result that is one text.
    pub fn text(text: &str) -> Self {
        Self::new().with(Content::text(text))
    }

    /// A tool error: something the model can read and act on.
    pub fn error(text: &str) -> Self {
        Self::text(text).failed()
    }

    /// A result that is one value, and its JSON as text for clients that read no structured content.
    pub fn structured(value: Json) -> Self {
        Self::text(value.as_str()).with_structured(value)
    }

    /// Adds a block.
    pub fn with(mut self, block: Content) -> Self {
        self.blocks.push(block);
        self
    }

    /// Sets the structured content.
    pub fn with_structured(mut self, value: Json) -> Self {
        self.structured = Some(value);
        self
    }

    /// Marks it as a tool error.
    pub fn failed(mut self) -> Self {
        self.is_error = true;
        self
    }

    /// Whether it is a tool error.
    pub fn is_error(&self) -> bool {
        self.is_error
    }

    /// The result as it is stored.
    pub fn into_json(self) -> Json {
        let blocks: usize = self.blocks.iter().map(|block| block.0.len() + 1).sum();
        let structured = self.structured.as_ref().map_or(0, Json::bytes);
        let mut out = String::with_capacity(blocks + structured + 64);
        out.push_str("{\"content\":[");
        for (index, block) in self.blocks.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            out.push_str(&block.0);
        }
        out.push(']');
        if let Some(value) = &self.structured {
            text::push_raw_member(&mut out, "structuredContent", value.as_str());
        }
        if self.is_error {
            out.push_str(",\"isError\":true");
        }
        out.push('}');
        Json::from_text(out)
    }
}

/// One block of a result's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content(String);

impl Content {
    fn of(kind: &str) -> Self {
        Self(format!("{{\"type\":\"{kind}\""))
    }

    /// The block as JSON.
    pub(crate) fn as_json(&self) -> &str {
        &self.0
    }

    /// A block that was stored as JSON.
    pub(crate) fn from_stored(block: &RawValue) -> Self {
        Self(block.get().to_owned())
    }

    /// A part of a resource that was stored as JSON.
    pub(crate) fn from_stored_resource(content: &RawValue) -> Self {
        Self::resource_block(content.get())
    }

    fn member(mut self, name: &str, value: &str) -> Self {
        text::push_str_member(&mut self.0, name, value);
        self
    }

    fn closed(mut self) -> Self {
        self.0.push('}');
        self
    }

    /// Text.
    pub fn text(text: &str) -> Self {
        Self::of("text").member("text", text).closed()
    }

    /// A picture.
    pub fn image(bytes: &[u8], mime_type: &str) -> Self {
        Self::of("image").member("data", &STANDARD.encode(bytes)).member("mimeType", mime_type).closed()
    }

    /// A recording.
    pub fn audio(bytes: &[u8], mime_type: &str) -> Self {
        Self::of("audio").member("data", &STANDARD.encode(bytes)).member("mimeType", mime_type).closed()
    }

    /// Something that the client may fetch.
    pub fn resource_link(uri: &str, name: &str, mime_type: Option<&str>) -> Self {
        let link = Self::of("resource_link").member("uri", uri).member("name", name);
        match mime_type {
            Some(mime_type) => link.member("mimeType", mime_type).closed(),
            None => link.closed(),
        }
    }

    /// A text resource, here and now.
    pub fn embedded_text(uri: &str, text: &str, mime_type: Option<&str>) -> Self {
        Self::embedded(uri, "text", text, mime_type)
    }

    /// A binary resource, here and now.
    pub fn embedded_blob(uri: &str, bytes: &[u8], mime_type: Option<&str>) -> Self {
        Self::embedded(uri, "blob", &STANDARD.encode(bytes), mime_type)
    }

    fn embedded(uri: &str, name: &str, body: &str, mime_type: Option<&str>) -> Self {
        let mut resource = String::from("{\"uri\":");
        text::push_str(&mut resource, uri);
        if let Some(mime_type) = mime_type {
            text::push_str_member(&mut resource, "mimeType", mime_type);
        }
        text::push_str_member(&mut resource, name, body);
        resource.push('}');
        Self::resource_block(&resource)
    }

    fn resource_block(resource: &str) -> Self {
        let mut block = Self::of("resource");
        text::push_raw_member(&mut block.0, "resource", resource);
        block.closed()
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::text(&text)
    }
}
