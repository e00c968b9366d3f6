//! `tools/list`: which tools there are.

use super::Revision;
use crate::jsonrpc::{self, RequestId};
use crate::text;
use crate::tool::{TaskSupport, ToolDeclaration};

/// One page of the list.
#[derive(Debug, Clone, Copy)]
pub struct Page<'a> {
    /// The tools, in an order that stays.
    pub tools: &'a [&'a ToolDeclaration],
    /// Where the next page begins, if there is one.
    pub next_cursor: Option<&'a str>,
    /// Whether this client may be handed a ticket instead of a result. A ticket would break the output schema, so
    /// tools that can become tasks are listed without theirs.
    pub may_get_tickets: bool,
}

/// The answer, with what the revision has.
pub fn answer(id: &RequestId, page: &Page<'_>, revision: Revision) -> String {
    const TOOL_BYTES: usize = 512;
    jsonrpc::response(id, 64 + TOOL_BYTES * page.tools.len(), |out| {
        out.push_str("{\"tools\":[");
        for (place, tool) in page.tools.iter().enumerate() {
            if place > 0 {
                out.push(',');
            }
            write_tool(out, tool, page.may_get_tickets, revision);
        }
        out.push(']');
        if let Some(cursor) = page.next_cursor {
            text::push_str_member(out, "nextCursor", cursor);
        }
        out.push('}');
    })
}

fn write_tool(out: &mut String, tool: &ToolDeclaration, may_get_tickets: bool, revision: Revision) {
    let keeps_output = !may_get_tickets || tool.task_support() == TaskSupport::Forbidden;
    out.push_str("{\"name\":");
    text::push_str(out, tool.name());
    tool.listed().write_strict(out, revision.has_titles(), keeps_output && revision.has_structured_content());
    if revision.has_tasks() {
        out.push_str(",\"execution\":{\"taskSupport\":\"");
        out.push_str(tool.task_support().as_str());
        out.push_str("\"}");
    }
    out.push('}');
}

/// The list of tools has changed.
pub fn changed() -> String {
    jsonrpc::notification("notifications/tools/list_changed", 2, |out| out.push_str("{}"))
}
