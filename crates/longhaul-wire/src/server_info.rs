use std::sync::Arc;

use crate::jsonrpc::RequestId;
use crate::{Revision, text};

/// The server's name and version, rendered once and put into every result of a stateless request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerInfo {
    /// `"io.modelcontextprotocol/serverInfo":{…}`, or nothing.
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

    /// A server that does not name itself.
    pub fn hidden() -> Self {
        Self { member: "".into() }
    }

    /// The member of a `_meta` object; empty for a hidden server.
    pub(crate) fn member(&self) -> &str {
        &self.member
    }

    /// Bytes of the member and of what surrounds it in a result, roughly.
    pub(crate) fn room(&self) -> usize {
        self.member.len() + 64
    }

    /// Appends `,"_meta":{…}`.
    pub(crate) fn write_meta(&self, out: &mut String) {
        if !self.member.is_empty() {
            out.push_str(",\"_meta\":{");
            out.push_str(&self.member);
            out.push('}');
        }
    }
}

/// What every answer needs to know about the request it answers.
#[derive(Debug, Clone, Copy)]
pub struct ReplyTo<'a> {
    pub id: &'a RequestId,
    pub revision: Revision,
    pub server: &'a ServerInfo,
}
