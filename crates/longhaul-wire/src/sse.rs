//! Server-Sent Events, as far as MCP uses them: one message per event, in one `data:` line.

use crate::text;

/// An empty comment. It is sent to keep a connection without messages open.
pub const KEEP_ALIVE: &str = ":\n\n";

/// The event that carries one message.
///
/// ```
/// assert_eq!(longhaul_wire::sse::event("{\"a\":1}"), "data: {\"a\":1}\n\n");
/// ```
pub fn event(message: &str) -> String {
    let mut out = String::with_capacity(message.len() + 8);
    write_data(&mut out, message);
    out
}

/// The event that carries one message of a stream that can be resumed: `id` comes back as `Last-Event-ID`.
///
/// ```
/// assert_eq!(longhaul_wire::sse::numbered_event("s1-7", "{}"), "id: s1-7\ndata: {}\n\n");
/// ```
pub fn numbered_event(id: &str, message: &str) -> String {
    let mut out = String::with_capacity(id.len() + message.len() + 16);
    write_id(&mut out, id);
    write_data(&mut out, message);
    out
}

/// The first event of a stream that can be resumed: an ID and nothing else, so that a client that loses the stream
/// before its first message can resume it.
///
/// ```
/// assert_eq!(longhaul_wire::sse::primer("s1-0"), "id: s1-0\ndata: \n\n");
/// ```
pub fn primer(id: &str) -> String {
    numbered_event(id, "")
}

/// The field that tells a client how long to wait before it connects again after it has lost the connection.
///
/// ```
/// assert_eq!(longhaul_wire::sse::retry(500), "retry: 500\n\n");
/// ```
pub fn retry(wait_ms: u64) -> String {
    format!("retry: {wait_ms}\n\n")
}

fn write_id(out: &mut String, id: &str) {
    out.push_str("id: ");
    // The server's IDs have no line breaks. If one had, the text after the break would be read as another field.
    out.extend(id.chars().filter(|character| !matches!(character, '\n' | '\r' | '\0')));
    out.push('\n');
}

fn write_data(out: &mut String, message: &str) {
    // Some clients do not join several `data:` lines, so a message with line breaks is written as one line.
    out.push_str("data: ");
    out.push_str(&text::one_line(message));
    out.push_str("\n\n");
}
