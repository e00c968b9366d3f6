//! `notifications/message`: a log line, on the stream of the call that asked for it. Never sent for a task: the answer
//! that creates one ends that stream.

use crate::{LogLevel, LogMessage};

/// Whether a client hears of a message, `asked` being the level that its request named. Nothing, if it named none.
pub fn is_wanted(message: LogMessage<'_>, asked: Option<LogLevel>) -> bool {
    asked.is_some_and(|least| message.level >= least)
}

/// The notification.
pub fn notification(message: LogMessage<'_>) -> String {
    crate::logging::notification(message, |_| {})
}
