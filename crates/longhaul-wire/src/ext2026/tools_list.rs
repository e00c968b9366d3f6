//! `tools/list`: which tools there are.

use std::borrow::Cow;

use super::{Cache, Params, ServerInfo};
use crate::jsonrpc::{self, RequestId, RpcError};
use crate::params::optional_string;
use crate::text;
use crate::tool::{TaskSupport, ToolDeclaration};

pub use crate::refusal::no_such_cursor;

/// Where the page begins that is asked for; at the beginning, when it does not say.
pub fn cursor<'a>(params: &Params<'a>) -> Result<Option<Cow<'a, str>>, RpcError> {
    optional_string("cursor", params.cursor)
}

/// One page of the list.
#[derive(Debug, Clone, Copy)]
pub struct Page<'a> {
    /// The tools, in an order that stays.
    pub tools: &'a [&'a ToolDeclaration],
    /// Where the next page begins, if there is one.
    pub next_cursor: Option<&'a str>,
    /// How long this holds.
    pub cache: Cache,
    /// Whether this client may be handed a ticket instead of a result. A ticket would break the output schema, so
    /// tools that can become tasks are listed without theirs.
    pub may_get_tickets: bool,
}

/// The answer.
pub fn answer(id: &RequestId, page: &Page<'_>, server: &ServerInfo) -> String {
    const TOOL_BYTES: usize = 512;
    jsonrpc::response(id, server.room() + TOOL_BYTES * page.tools.len(), |out| {
        out.push_str("{\"resultType\":\"complete\",\"tools\":[");
        for (place, tool) in page.tools.iter().enumerate() {
            if place > 0 {
                out.push(',');
            }
            let with_output = !page.may_get_tickets || tool.task_support() == TaskSupport::Forbidden;
            out.push_str("{\"name\":");
            text::push_str(out, tool.name());
            tool.listed().write(out, with_output);
            out.push('}');
        }
        out.push(']');
        if let Some(cursor) = page.next_cursor {
            text::push_str_member(out, "nextCursor", cursor);
        }
        page.cache.write(out);
        server.write_meta(out);
        out.push('}');
    })
}
