//! Server-Sent Events, as far as MCP uses them: one message per event, in one `data:` line.

use crate::text;

/// A comment that carries nothing and keeps a quiet connection open.
pub const KEEP_ALIVE: &str = ":\n\n";

/// The event that carries one message.
///
/// ```
/// assert_eq!(longhaul_wire::sse::event("{\"a\":1}"), "data: {\"a\":1}\n\n");
/// ```
pub fn event(message: &str) -> String {
    // Some clients join no `data:` lines, so a pretty-printed payload must not make several.
    let message = text::one_line(message);
    let mut out = String::with_capacity(message.len() + 8);
    out.push_str("data: ");
    out.push_str(&message);
    out.push_str("\n\n");
    out
}
