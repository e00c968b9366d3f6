//! `notifications/message`: a log message for the client.

use longhaul_task::Json;

use super::Related;
use super::related::write_meta;
use crate::LogLevel;
use crate::jsonrpc;
use crate::text;

/// One log message.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// How bad it is. Whether the client wants to hear of that is asked before.
    pub level: LogLevel,
    /// Who says it.
    pub logger: Option<&'a str>,
    /// What is said: any JSON.
    pub data: &'a Json,
    /// The task that it is about.
    pub related: Option<Related<'a>>,
}

/// The notification.
pub fn notification(entry: &Entry<'_>) -> String {
    jsonrpc::notification("notifications/message", 192 + entry.data.bytes(), |out| {
        out.push_str("{\"level\":\"");
        out.push_str(entry.level.as_str());
        out.push('"');
        if let Some(logger) = entry.logger {
            text::push_str_member(out, "logger", logger);
        }
        text::push_raw_member(out, "data", entry.data.as_str());
        write_meta(out, None, entry.related);
        out.push('}');
    })
}
