//! A handler's log lines as messages of the protocol.

use longhaul_engine::{LogLine, Severity};
use longhaul_wire::{LogLevel, LogMessage};

pub(crate) fn message(line: &LogLine) -> LogMessage<'_> {
    let level = match line.severity {
        Severity::Debug => LogLevel::Debug,
        Severity::Info => LogLevel::Info,
        Severity::Notice => LogLevel::Notice,
        Severity::Warning => LogLevel::Warning,
        Severity::Error => LogLevel::Error,
        Severity::Critical => LogLevel::Critical,
        Severity::Alert => LogLevel::Alert,
        Severity::Emergency => LogLevel::Emergency,
    };
    LogMessage { level, logger: line.logger.as_deref(), data: &line.data }
}
