//! Icons of prompts, resources and resource templates.

use crate::text;

/// A picture that clients may show beside a name.
///
/// ```
/// use longhaul_wire::Icon;
///
/// let icon = Icon::new("https://example.com/report.png").mime_type("image/png").size("48x48");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Icon {
    src: String,
    mime_type: Option<String>,
    sizes: Vec<String>,
    theme: Option<IconTheme>,
}

/// The background that an icon is drawn for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IconTheme {
    /// A light background.
    Light,
    /// A dark background.
    Dark,
}

impl Icon {
    /// An icon at an `https:` URL, or in a `data:` URI.
    pub fn new(src: impl Into<String>) -> Self {
        Self { src: src.into(), mime_type: None, sizes: Vec::new(), theme: None }
    }

    /// The type of the picture, if its server may name another one.
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// Adds a size at which it can be shown: `48x48`, or `any` for a picture that scales.
    pub fn size(mut self, size: impl Into<String>) -> Self {
        self.sizes.push(size.into());
        self
    }

    /// The background that it is drawn for.
    pub fn theme(mut self, theme: IconTheme) -> Self {
        self.theme = Some(theme);
        self
    }

    fn write(&self, out: &mut String) {
        out.push_str("{\"src\":");
        text::push_str(out, &self.src);
        if let Some(mime_type) = &self.mime_type {
            text::push_str_member(out, "mimeType", mime_type);
        }
        if !self.sizes.is_empty() {
            out.push_str(",\"sizes\":");
            text::push_array(out, &self.sizes, |out, size| text::push_str(out, size));
        }
        if let Some(theme) = self.theme {
            text::push_str_member(out, "theme", if theme == IconTheme::Light { "light" } else { "dark" });
        }
        out.push('}');
    }
}

/// Appends `,"icons":[…]`, unless there are none.
pub(crate) fn write_icons(out: &mut String, icons: &[Icon]) {
    if !icons.is_empty() {
        out.push_str(",\"icons\":");
        text::push_array(out, icons, |out, icon| icon.write(out));
    }
}
