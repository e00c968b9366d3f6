use std::sync::Arc;

use crate::text;

/// Who the server says it is, rendered once and put into every result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerInfo {
    /// `"io.modelcontextprotocol/serverInfo":{…}`, or nothing.
    member: Arc<str>,
}

/// The member's name.
pub(crate) const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

impl ServerInfo {
    /// A server of that name and version.
    pub fn new(name: &str, version: &str) -> Self {
        let mut member = format!("\"{SERVER_INFO}\":{{\"name\":");
        text::push_str(&mut member, name);
        text::push_str_member(&mut member, "version", version);
        member.push('}');
        Self { member: member.into() }
    }

    /// A server that does not say who it is.
    pub fn hidden() -> Self {
        Self { member: "".into() }
    }

    /// The member of a `_meta` object; nothing for a hidden server.
    pub(super) fn member(&self) -> &str {
        &self.member
    }

    /// How many bytes it takes in a result, and the few around it.
    pub(super) fn room(&self) -> usize {
        self.member.len() + 64
    }

    /// Appends `,"_meta":{…}`.
    pub(super) fn write_meta(&self, out: &mut String) {
        if !self.member.is_empty() {
            out.push_str(",\"_meta\":{");
            out.push_str(&self.member);
            out.push('}');
        }
    }
}
