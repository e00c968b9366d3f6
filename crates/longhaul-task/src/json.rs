//! JSON payloads, which the state machine passes on without reading them.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The text of one JSON value, stored exactly as it will be sent. The caller of [`Json::from_text`] is responsible for
/// its syntax; this crate does not parse it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Json(Arc<str>);

impl Json {
    pub fn from_text(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn bytes(&self) -> usize {
        self.0.len()
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
