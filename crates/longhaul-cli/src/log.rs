//! Logs: for people by default, JSON on request. They go to standard error, because standard output may be a protocol.

use std::io::IsTerminal;

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One object a line.
    Json,
}

/// Starts logging. `RUST_LOG` chooses what is shown; by default warnings, and what the server does.
pub(crate) fn start(format: LogFormat) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn,longhaul=info"));
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    // A line that cannot be written is lost; to complain about it in the same place would end whoever logged.
    let lines = lines.log_internal_errors(false);
    // Colours are for a terminal, not for a file.
    let lines = lines.with_ansi(std::io::stderr().is_terminal());
    // Logging that was started before (by a test, say) stays as it is.
    let _ = match format {
        LogFormat::Text => lines.try_init(),
        LogFormat::Json => lines.json().try_init(),
    };
}
