//! Payloads that the machine carries and never reads.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The text of one JSON value, kept as the bytes that will be sent. Whoever makes one has checked that it is JSON;
/// nothing in this crate looks inside.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Json(Arc<str>);

impl Json {
    /// Takes a text that is known to be one JSON value.
    pub fn from_text(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its length in bytes.
    pub fn bytes(&self) -> usize {
        self.0.len()
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
