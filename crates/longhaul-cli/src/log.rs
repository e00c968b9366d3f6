//! The log: text or JSON, on standard error, because standard output may carry the protocol. The audit log is always JSON,
//! and is written only if `--audit` or the config file names its destination.

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
    /// For people to read.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// Starts logging. `RUST_LOG` chooses what is logged. The default is warnings of all crates, and also information of Longhaul's.
pub(crate) fn start(format: LogFormat, audit: Option<Audit>) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn,longhaul=info"));
    let layer = fmt::layer().with_writer(std::io::stderr).with_target(false);
    // A line that cannot be written is lost. A report of that would go to the same stream, and panic.
    let layer = layer.log_internal_errors(false);
    // No colours in a file.
    let layer = layer.with_ansi(std::io::stderr().is_terminal());
    let layer = match format {
        LogFormat::Text => layer.boxed(),
        LogFormat::Json => layer.json().boxed(),
    };
    let without_audit = Targets::new().with_default(LevelFilter::TRACE).with_target(AUDIT_TARGET, LevelFilter::OFF);
    let audit = audit.map(|audit| {
        let layer = fmt::layer().json().flatten_event(true).with_level(false).with_target(false);
        let layer = layer.log_internal_errors(false).with_writer(audit);
        layer.with_filter(Targets::new().with_target(AUDIT_TARGET, LevelFilter::INFO))
    });
    let all = tracing_subscriber::registry().with(layer.with_filter(filter).with_filter(without_audit)).with(audit);
    // Logging that was started before, for example by a test, stays.
    let _ = all.try_init();
}
