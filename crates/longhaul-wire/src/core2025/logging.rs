//! `notifications/message`: a log line for the client, on the stream of what it is about.

use super::Related;
use super::related::write_meta;
use crate::{LogLevel, LogMessage};

/// From which severity on a client hears log lines that has not said what it wants: all that is not only for whoever
/// looks for a fault.
pub const LEVEL_USUAL: LogLevel = LogLevel::Info;

/// Whether a client hears of a message, `set` being what it asked for by `logging/setLevel`.
pub fn is_wanted(message: LogMessage<'_>, set: Option<LogLevel>) -> bool {
    message.level >= set.unwrap_or(LEVEL_USUAL)
}

/// The notification. For a task, `related` is the task.
pub fn notification(message: LogMessage<'_>, related: Option<Related<'_>>) -> String {
    crate::logging::notification(message, |out| write_meta(out, None, related))
}
