use std::sync::Arc;

use crate::jsonrpc::RequestId;
use crate::{Revision, text};

/// The server's name and version. They are rendered once and are part of every result of a stateless request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerInfo {
    /// `"io.modelcontextprotocol/serverInfo":{…}`; empty for a hidden server.
    member: Arc<str>,
}

/// The key of the server's name and version in `_meta`.
pub(crate) const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

impl ServerInfo {
    pub fn new(name: &str, version: &str) -> Self {
        let mut member = format!("\"{SERVER_INFO}\":{{\"name\":");
        text::push_str(&mut member, name);
        text::push_str_member(&mut member, "version", version);
        member.push('}');
        Self { member: member.into() }
    }

    /// For a server whose results do not tell its name and version.
    pub fn hidden() -> Self {
        Self { member: "".into() }
    }

    /// The member of a `_meta` object; empty for a hidden server.
    pub(crate) fn member(&self) -> &str {
        &self.member
    }

    /// How many bytes to reserve for the member and the text around it in a response.
    pub(crate) fn room(&self) -> usize {
        self.member.len() + 64
    }

    /// Appends `,"_meta":{…}`; nothing for a hidden server.
    pub(crate) fn write_meta(&self, out: &mut String) {
        if !self.member.is_empty() {
            out.push_str(",\"_meta\":{");
            out.push_str(&self.member);
            out.push('}');
        }
    }
}

/// What every response contains of its request and its server.
#[derive(Debug, Clone, Copy)]
pub struct ReplyTo<'a> {
    pub id: &'a RequestId,
    pub revision: Revision,
    pub server: &'a ServerInfo,
}
