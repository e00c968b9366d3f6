//! `notifications/message`: a log line for the client, on the stream of the request or task it belongs to.

use longhaul_task::Json;
use serde::Deserialize;

use crate::related::{RelatedTask, write_meta};
use crate::{Revision, jsonrpc, text};

/// A level of `logging/setLevel` and `notifications/message`, mildest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

impl LogLevel {
    /// All levels, mildest first.
    pub const ALL: [Self; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];

    /// The level's name in messages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }

    /// The level of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == name)
    }
}

/// The content of one `notifications/message`.
#[derive(Debug, Clone, Copy)]
pub struct LogMessage<'a> {
    pub level: LogLevel,
    pub logger: Option<&'a str>,
    pub data: &'a Json,
}

/// The least severe line that a session's client gets when it has not set a level.
pub const LEVEL_USUAL: LogLevel = LogLevel::Info;

/// Whether the client gets a line. `level` is what it asked for: of a session by `logging/setLevel`, else in the
/// request. A stateless request that names no level gets no lines.
pub fn is_wanted(message: LogMessage<'_>, level: Option<LogLevel>, revision: Revision) -> bool {
    level.or((!revision.is_stateless()).then_some(LEVEL_USUAL)).is_some_and(|least| message.level >= least)
}

/// `related` is the task that logs. A stateless client gets no lines of a task: the answer that creates it ends the
/// stream.
pub fn notification(message: LogMessage<'_>, related: Option<RelatedTask<'_>>) -> String {
    jsonrpc::notification("notifications/message", 192 + message.data.bytes(), |out| {
        out.push_str("{\"level\":\"");
        out.push_str(message.level.as_str());
        out.push('"');
        if let Some(logger) = message.logger {
            text::push_str_member(out, "logger", logger);
        }
        text::push_raw_member(out, "data", message.data.as_str());
        write_meta(out, None, related);
        out.push('}');
    })
}
