//! `tools/list` and `notifications/tools/list_changed`.

use crate::jsonrpc::{self, RequestId};
use crate::tool::{ToolDeclaration, write_tool};
use crate::{Cache, ReplyTo, subscription, text};

/// One page of the list.
#[derive(Debug, Clone, Copy)]
pub struct ToolPage<'a> {
    /// In an order that does not change between requests.
    pub tools: &'a [&'a ToolDeclaration],
    pub next_cursor: Option<&'a str>,
    /// For stateless requests; sessions have a notification instead.
    pub cache: Cache,
    /// Whether this client may get a ticket instead of a result. A ticket would break the output schema, so tools that
    /// can become tasks are listed without theirs.
    pub may_get_tickets: bool,
}

pub fn answer(to: &ReplyTo<'_>, page: &ToolPage<'_>) -> String {
    const TOOL_BYTES: usize = 512;
    jsonrpc::response(to.id, to.server.room() + TOOL_BYTES * page.tools.len(), |out| {
        out.push('{');
        if to.revision.is_stateless() {
            out.push_str("\"resultType\":\"complete\",");
        }
        out.push_str("\"tools\":[");
        for (index, tool) in page.tools.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            write_tool(out, tool, page.may_get_tickets, to.revision);
        }
        out.push(']');
        if let Some(cursor) = page.next_cursor {
            text::push_str_member(out, "nextCursor", cursor);
        }
        if to.revision.is_stateless() {
            page.cache.write(out);
            to.server.write_meta(out);
        }
        out.push('}');
    })
}

/// The notification that the list has changed; `subscription` is the request of the stream that carries it, in the
/// stateless era.
pub fn changed(subscription: Option<&RequestId>) -> String {
    jsonrpc::notification("notifications/tools/list_changed", 128, |out| {
        out.push('{');
        if let Some(id) = subscription {
            subscription::write_id(out, id);
        }
        out.push('}');
    })
}
