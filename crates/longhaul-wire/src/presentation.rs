//! What a list shows of a prompt, a resource or a resource template beside its name.

use longhaul_task::Json;

use crate::icon::write_icons;
use crate::{Icon, Revision, text};

/// The title, the description, the icons and `_meta` of an entry.
#[derive(Debug, Clone, Default)]
pub(crate) struct Presentation {
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) icons: Vec<Icon>,
    pub(crate) meta: Option<Json>,
}

impl Presentation {
    /// Puts `_meta` on one line. `None` if it is not a JSON object.
    pub(crate) fn with_meta_on_one_line(mut self) -> Option<Self> {
        if let Some(meta) = &self.meta {
            let line = text::one_line(meta.as_str());
            text::raw(&line).filter(|meta| text::is_object(meta))?;
            self.meta = Some(Json::from_text(line.into_owned()));
        }
        Some(self)
    }

    /// Appends the title and the description.
    pub(crate) fn write_title_and_description(&self, out: &mut String, revision: Revision) {
        write_title_and_description(out, self.title.as_deref(), self.description.as_deref(), revision);
    }

    /// Appends the icons and `_meta`.
    pub(crate) fn write_icons_and_meta(&self, out: &mut String, revision: Revision) {
        if revision.has_icons() {
            write_icons(out, &self.icons);
        }
        if let Some(meta) = self.meta.as_ref().filter(|_| revision.has_titles()) {
            text::push_raw_member(out, "_meta", meta.as_str());
        }
    }
}

/// Appends a title, at revisions that have titles, and a description.
pub(crate) fn write_title_and_description(
    out: &mut String,
    title: Option<&str>,
    description: Option<&str>,
    revision: Revision,
) {
    if let Some(title) = title.filter(|_| revision.has_titles()) {
        text::push_str_member(out, "title", title);
    }
    if let Some(description) = description {
        text::push_str_member(out, "description", description);
    }
}
