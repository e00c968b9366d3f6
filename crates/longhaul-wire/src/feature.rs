//! What a server offers beside tasks, as `initialize` and `server/discover` declare it.

/// The features that the server declares. Tools and logging always are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ServerFeatures {
    pub prompts: bool,
    pub resources: bool,
    /// Whether any argument of a prompt or variable of a template has completions.
    pub completions: bool,
    /// Whether the server sends a notification when a list or a resource changes.
    pub tells_changes: bool,
}

impl ServerFeatures {
    /// Appends the members of a capabilities object.
    pub(crate) fn write(self, out: &mut String) {
        let list_changed = if self.tells_changes { "\"listChanged\":true" } else { "" };
        out.push_str("\"logging\":{}");
        if self.completions {
            out.push_str(",\"completions\":{}");
        }
        let mut feature = |name: &str, details: &str| {
            out.push_str(name);
            out.push_str(list_changed);
            out.push_str(details);
            out.push('}');
        };
        if self.prompts {
            feature(",\"prompts\":{", "");
        }
        if self.resources {
            feature(",\"resources\":{", if self.tells_changes { ",\"subscribe\":true" } else { "" });
        }
        feature(",\"tools\":{", "");
    }
}
