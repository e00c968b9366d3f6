//! `notifications/message`: a log line for the client, on the stream of the request or task it belongs to.

use longhaul_task::{LogLevel, LogLine};

use crate::related::{Related, write_meta};
use crate::{Revision, jsonrpc, text};

/// The least severe line that a session's client gets when it has not set a level.
pub const LEVEL_USUAL: LogLevel = LogLevel::Info;

/// Whether the client gets a line. `level` is what it asked for: of a session by `logging/setLevel`, else in the
/// request. A stateless request that names no level gets no lines.
pub fn is_wanted(line: &LogLine, level: Option<LogLevel>, revision: Revision) -> bool {
    level.or((!revision.is_stateless()).then_some(LEVEL_USUAL)).is_some_and(|least| line.level >= least)
}

/// `related` is the task that logs. A stateless client gets no lines of a task: the answer that creates it ends the
/// stream.
pub fn notification(line: &LogLine, related: Option<Related<'_>>) -> String {
    jsonrpc::notification("notifications/message", 192 + line.data.bytes(), |out| {
        out.push_str("{\"level\":\"");
        out.push_str(line.level.as_str());
        out.push('"');
        if let Some(logger) = &line.logger {
            text::push_str_member(out, "logger", logger);
        }
        text::push_raw_member(out, "data", line.data.as_str());
        write_meta(out, None, related);
        out.push('}');
    })
}
