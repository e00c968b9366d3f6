//! `server/discover`: what is spoken here, and by whom.

use super::{Cache, EXTENSION, ServerInfo};
use crate::jsonrpc::{self, RequestId};
use crate::text;

/// What a server says of itself.
#[derive(Debug, Clone, Copy)]
pub struct Discovered<'a> {
    /// The protocol versions it speaks, the newest first.
    pub versions: &'a [&'a str],
    /// Whether it tells when its tools change.
    pub tells_tool_changes: bool,
    /// How models should use it.
    pub instructions: Option<&'a str>,
    /// How long this holds.
    pub cache: Cache,
}

/// The answer.
pub fn answer(id: &RequestId, discovered: &Discovered<'_>, server: &ServerInfo) -> String {
    let room = server.room() + 256 + discovered.instructions.map_or(0, str::len);
    jsonrpc::response(id, room, |out| {
        out.push_str("{\"resultType\":\"complete\",\"supportedVersions\":[");
        for (place, version) in discovered.versions.iter().enumerate() {
            if place > 0 {
                out.push(',');
            }
            text::push_str(out, version);
        }
        out.push_str("],\"capabilities\":{\"logging\":{},\"tools\":{");
        if discovered.tells_tool_changes {
            out.push_str("\"listChanged\":true");
        }
        out.push_str("},\"extensions\":{\"");
        out.push_str(EXTENSION);
        out.push_str("\":{}}}");
        if let Some(instructions) = discovered.instructions {
            text::push_str_member(out, "instructions", instructions);
        }
        discovered.cache.write(out);
        server.write_meta(out);
        out.push('}');
    })
}
