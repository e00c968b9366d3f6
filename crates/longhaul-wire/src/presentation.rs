//! What a list shows of a prompt, a resource or a resource template beside its name.

use longhaul_task::Json;

use crate::icon::write_icons;
use crate::{Icon, Revision, text};

#[derive(Debug, Clone, Default)]
pub(crate) struct Presentation {
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) icons: Vec<Icon>,
    pub(crate) meta: Option<Json>,
}

impl Presentation {
    /// Brings `_meta` onto one line. `None` if it is not an object.
    pub(crate) fn with_checked_meta(mut self) -> Option<Self> {
        if let Some(meta) = &self.meta {
            let line = text::one_line(meta.as_str());
            text::raw(&line).filter(|meta| text::is_object(meta))?;
            self.meta = Some(Json::from_text(line.into_owned()));
        }
        Some(self)
    }

    /// Appends the title and the description.
    pub(crate) fn write_texts(&self, out: &mut String, revision: Revision) {
        write_texts(out, self.title.as_deref(), self.description.as_deref(), revision);
    }

    /// Appends the icons and `_meta`.
    pub(crate) fn write_extras(&self, out: &mut String, revision: Revision) {
        if revision.has_icons() {
            write_icons(out, &self.icons);
        }
        if let Some(meta) = self.meta.as_ref().filter(|_| revision.has_titles()) {
            text::push_raw_member(out, "_meta", meta.as_str());
        }
    }
}

/// Appends a title, at revisions that have titles, and a description.
pub(crate) fn write_texts(out: &mut String, title: Option<&str>, description: Option<&str>, revision: Revision) {
    if let Some(title) = title.filter(|_| revision.has_titles()) {
        text::push_str_member(out, "title", title);
    }
    if let Some(description) = description {
        text::push_str_member(out, "description", description);
    }
}
