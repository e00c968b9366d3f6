//! What a handler says to whoever listens just now.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Json;

/// How long one log line may be: its data, as JSON.
pub const LOG_BYTES_MAX: usize = 16 << 10;

/// One log line. It is kept nowhere: whoever does not listen does not hear it, and a crash is no loss.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// How bad it is.
    pub level: LogLevel,
    /// Which part says it.
    pub logger: Option<Arc<str>>,
    /// What is said: any JSON.
    pub data: Json,
}

impl LogLine {
    /// A line, within its limit: of one that is too long only its size is said.
    pub fn new(level: LogLevel, logger: Option<&str>, data: Json) -> Self {
        let bytes = data.bytes() + logger.map_or(0, str::len);
        if bytes <= LOG_BYTES_MAX {
            return Self { level, logger: logger.map(Arc::from), data };
        }
        let instead = format!("\"A log line of {bytes} bytes was left out: {LOG_BYTES_MAX} are the most.\"");
        Self { level, logger: None, data: Json::from_text(instead) }
    }
}

/// The severity of a log message, mildest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// For whoever looks for a fault.
    Debug,
    /// Worth knowing.
    Info,
    /// Normal, but notable.
    Notice,
    /// Something may go wrong.
    Warning,
    /// Something went wrong.
    Error,
    /// A part does not work.
    Critical,
    /// Act now.
    Alert,
    /// Nothing works.
    Emergency,
}

impl LogLevel {
    /// All of them, mildest first.
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

    /// The level's name.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_says_only_how_long_it_was() {
        let of = |bytes: usize| Json::from_text(format!("\"{}\"", "x".repeat(bytes - 2)));
        let line = LogLine::new(LogLevel::Info, None, of(LOG_BYTES_MAX));
        assert_eq!(line.data.bytes(), LOG_BYTES_MAX);
        for line in [
            LogLine::new(LogLevel::Info, None, of(LOG_BYTES_MAX + 1)),
            LogLine::new(LogLevel::Info, Some(&"x".repeat(LOG_BYTES_MAX)), of(2)),
        ] {
            assert!(line.data.bytes() < 100 && line.data.as_str().contains("left out"), "{line:?}");
        }
    }
}
