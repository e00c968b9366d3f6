//! `notifications/message`, which is the same in every generation.

use longhaul_task::Json;
use serde::Deserialize;

use crate::jsonrpc;
use crate::text;

/// A level of `logging/setLevel` and `notifications/message`, mildest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
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
#[allow(missing_docs)]
pub struct LogMessage<'a> {
    pub level: LogLevel,
    pub logger: Option<&'a str>,
    pub data: &'a Json,
}

/// The notification; `meta` appends what else the generation has to say.
pub(crate) fn notification(message: LogMessage<'_>, meta: impl FnOnce(&mut String)) -> String {
    jsonrpc::notification("notifications/message", 192 + message.data.bytes(), |out| {
        out.push_str("{\"level\":\"");
        out.push_str(message.level.as_str());
        out.push('"');
        if let Some(logger) = message.logger {
            text::push_str_member(out, "logger", logger);
        }
        text::push_raw_member(out, "data", message.data.as_str());
        meta(out);
        out.push('}');
    })
}
