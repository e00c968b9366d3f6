//! `tools/list`.

use crate::ReplyTo;
use crate::list::{self, PageEnd};
use crate::tool::{ToolDeclaration, is_listed, write_tool};

/// One page of the list.
#[derive(Debug, Clone, Copy)]
pub struct ToolPage<'a> {
    /// In an order that does not change between requests.
    pub tools: &'a [&'a ToolDeclaration],
    pub end: PageEnd<'a>,
    /// Whether this client may get a ticket instead of a result. A ticket would break the output schema, so tools that
    /// can become tasks are listed without theirs.
    pub may_get_tickets: bool,
}

pub fn answer(to: &ReplyTo<'_>, page: &ToolPage<'_>) -> String {
    let may_get_tickets = page.may_get_tickets;
    let listed: Vec<_> = page.tools.iter().filter(|tool| is_listed(tool, may_get_tickets, to.revision)).collect();
    list::page(to, "tools", listed.into_iter(), page.end, |out, tool| {
        write_tool(out, tool, may_get_tickets, to.revision);
    })
}
