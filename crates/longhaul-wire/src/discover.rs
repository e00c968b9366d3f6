//! `server/discover`: the server's revisions and capabilities, without a session.

use crate::capability::EXTENSION;
use crate::{ReplyTo, ServerFeatures, jsonrpc, text};

/// How long, and by whom, an answer may be cached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cache {
    pub ttl_ms: u64,
    /// Whether the answer is the same for every caller.
    pub is_public: bool,
}

impl Cache {
    /// For what is not to be cached.
    pub const NONE: Self = Self { ttl_ms: 0, is_public: false };

    pub(crate) fn write(self, out: &mut String) {
        text::push_number_member(out, "ttlMs", self.ttl_ms);
        text::push_str_member(out, "cacheScope", if self.is_public { "public" } else { "private" });
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Discovery<'a> {
    /// The names of the server's stateless revisions, the newest first.
    pub versions: &'a [&'a str],
    pub features: ServerFeatures,
    /// For models: how to use the server.
    pub instructions: Option<&'a str>,
    pub cache: Cache,
}

pub fn answer(to: &ReplyTo<'_>, discovered: &Discovery<'_>) -> String {
    let room = to.server.room() + 256 + discovered.instructions.map_or(0, str::len);
    jsonrpc::response(to.id, room, |out| {
        out.push_str("{\"resultType\":\"complete\",\"supportedVersions\":[");
        for (index, version) in discovered.versions.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            text::push_str(out, version);
        }
        out.push_str("],\"capabilities\":{");
        discovered.features.write(out);
        out.push_str(",\"extensions\":{\"");
        out.push_str(EXTENSION);
        out.push_str("\":{}}}");
        if let Some(instructions) = discovered.instructions {
            text::push_str_member(out, "instructions", instructions);
        }
        discovered.cache.write(out);
        to.server.write_meta(out);
        out.push('}');
    })
}
