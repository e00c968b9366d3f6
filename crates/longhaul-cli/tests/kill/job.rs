//! The calls that the test makes, and the results that each may have.

use std::path::{Path, PathBuf};

use rand::RngExt;
use rand::rngs::StdRng;
use serde_json::{Value, json};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LoadCall {
    /// Ends at once.
    Echo { text: String },
    /// Ends soon, unless its process dies: then it fails.
    Slow { millis: u64, label: String },
    /// Ends when it is cancelled, or when its process dies.
    Endless,
    /// Asks a question, which stays open if its process dies.
    Confirm { filename: String },
    /// Ends soon, and is started again if its process dies.
    Retry { millis: u64, trace: PathBuf },
    /// Ends when it is cancelled, and is started again if its process dies.
    EndlessRetry { trace: PathBuf },
    /// Asks a question, and asks it again if its process dies.
    RetryConfirm,
}

/// Longer than any run of this test.
const ENDLESS_SECONDS: u64 = 900_000;

impl LoadCall {
    /// A random job. `number` is unique in the test.
    pub(crate) fn random(rng: &mut StdRng, number: u64, directory: &Path) -> Self {
        let trace = || directory.join(format!("trace-{number}"));
        match rng.random_range(0..100) {
            0..30 => Self::Echo { text: format!("echo {number}") },
            30..48 => Self::Slow { millis: rng.random_range(0..100), label: format!("slow {number}") },
            48..58 => Self::Endless,
            58..78 => Self::Retry { millis: rng.random_range(0..150), trace: trace() },
            78..82 => Self::EndlessRetry { trace: trace() },
            82..92 => Self::Confirm { filename: format!("file-{number}") },
            _ => Self::RetryConfirm,
        }
    }

    pub(crate) fn tool(&self) -> &'static str {
        match self {
            Self::Echo { .. } => "echo",
            Self::Slow { .. } | Self::Endless => "slow_compute",
            Self::Confirm { .. } => "confirm_delete",
            Self::Retry { .. } | Self::EndlessRetry { .. } => "retry_job",
            Self::RetryConfirm => "retry_confirm",
        }
    }

    pub(crate) fn arguments(&self) -> Value {
        match self {
            Self::Echo { text } => json!({ "text": text }),
            Self::Slow { millis, label } => json!({ "seconds": seconds(*millis), "label": label }),
            Self::Endless => json!({ "seconds": ENDLESS_SECONDS, "label": "endless" }),
            Self::Confirm { filename } => json!({ "filename": filename }),
            Self::Retry { millis, trace } => json!({ "millis": millis, "file": trace }),
            Self::EndlessRetry { trace } => json!({ "millis": ENDLESS_SECONDS * 1_000, "file": trace }),
            Self::RetryConfirm => json!({}),
        }
    }

    /// Whether the job goes on or is started again after a crash. Otherwise it fails.
    pub(crate) fn is_retried(&self) -> bool {
        matches!(self, Self::Confirm { .. } | Self::Retry { .. } | Self::EndlessRetry { .. } | Self::RetryConfirm)
    }

    pub(crate) fn is_endless(&self) -> bool {
        matches!(self, Self::Endless | Self::EndlessRetry { .. })
    }

    pub(crate) fn asks(&self) -> bool {
        matches!(self, Self::Confirm { .. } | Self::RetryConfirm)
    }

    /// The file to which each attempt of the job appends a line.
    pub(crate) fn trace(&self) -> Option<&Path> {
        match self {
            Self::Retry { trace, .. } | Self::EndlessRetry { trace } => Some(trace),
            _ => None,
        }
    }

    /// Whether `text` is the result of this job.
    pub(crate) fn is_result(&self, text: &str) -> bool {
        match self {
            Self::Echo { text: expected } => text == expected,
            Self::Slow { millis, label } => text == format!("{label}: done after {} s", seconds(*millis)),
            Self::Confirm { filename } => text == format!("{filename} is deleted."),
            Self::Retry { .. } | Self::RetryConfirm => attempt(text).is_some(),
            Self::Endless | Self::EndlessRetry { .. } => false,
        }
    }
}

#[allow(clippy::cast_precision_loss, reason = "small numbers, which `f64` holds exactly")]
fn seconds(millis: u64) -> f64 {
    millis as f64 / 1_000.0
}

/// The number in `attempt 3`.
pub(crate) fn attempt(text: &str) -> Option<u32> {
    text.strip_prefix("attempt ")?.parse().ok()
}
