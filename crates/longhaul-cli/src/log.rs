//! The log: text or JSON, on standard error, because standard output may carry the protocol. The audit log is JSON, and is
//! written only where the user wants it.

use std::io::IsTerminal;

use clap::ValueEnum;
use longhaul::AUDIT_TARGET;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, fmt};

use crate::audit::Audit;

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One object a line.
    Json,
}

/// Starts logging. `RUST_LOG` chooses what is logged; by default warnings, and information from Longhaul.
pub(crate) fn start(format: LogFormat, audit: Option<Audit>) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn,longhaul=info"));
    let lines = fmt::layer().with_writer(std::io::stderr).with_target(false);
    // A line that cannot be written is lost. Reporting that on the same stream would panic.
    let lines = lines.log_internal_errors(false);
    // No colours in a file.
    let lines = lines.with_ansi(std::io::stderr().is_terminal());
    let lines = match format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().boxed(),
    };
    let ordinary = Targets::new().with_default(LevelFilter::TRACE).with_target(AUDIT_TARGET, LevelFilter::OFF);
    let audit = audit.map(|audit| {
        let objects = fmt::layer().json().flatten_event(true).with_level(false).with_target(false);
        let objects = objects.log_internal_errors(false).with_writer(audit);
        objects.with_filter(Targets::new().with_target(AUDIT_TARGET, LevelFilter::INFO))
    });
    let all = tracing_subscriber::registry().with(lines.with_filter(filter).with_filter(ordinary)).with(audit);
    // Logging that was started before, for example by a test, stays.
    let _ = all.try_init();
}
