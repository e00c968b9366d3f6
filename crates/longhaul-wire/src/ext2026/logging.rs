//! `notifications/message`: a log line, on the stream of the call that asked for it. Never sent for a task: the answer
//! that creates one ends that stream.

use longhaul_task::{LogLevel, LogLine};

/// Whether a client hears of a line, `asked` being the level that its request named. Nothing, if it named none.
pub fn is_wanted(line: &LogLine, asked: Option<LogLevel>) -> bool {
    asked.is_some_and(|least| line.level >= least)
}

/// The notification.
pub fn notification(line: &LogLine) -> String {
    crate::logging::notification(line, |_| {})
}
