use std::fmt;
use std::sync::Arc;

use serde_json::value::RawValue;

use crate::text;

/// The longest request ID, in bytes of JSON text without quotation marks. It is echoed in every message of a subscription.
pub const ID_BYTES_MAX: usize = 512;

/// What a request is called by: a string or a whole number, kept as the very text that came, so that it goes back
/// unchanged whatever its size or its escapes. Two IDs are the same when their texts are.
///
/// A progress token has the same shape and is kept the same way.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(Arc<str>);

impl RequestId {
    /// Reads an ID; `None` for null, fractions, booleans, objects, arrays, and texts past [`ID_BYTES_MAX`].
    pub fn parse(raw: &RawValue) -> Option<Self> {
        let json = raw.get();
        let inner = json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(json);
        let is_short = inner.len() <= ID_BYTES_MAX;
        (is_short && (is_integer(json) || text::string(raw).is_some())).then(|| Self(json.into()))
    }

    /// A text of one's own as an ID.
    pub fn from_text(text: &str) -> Self {
        let mut json = String::new();
        text::push_str(&mut json, text);
        Self(json.into())
    }

    /// The ID as JSON.
    pub fn as_json(&self) -> &str {
        &self.0
    }
}

impl From<u64> for RequestId {
    fn from(number: u64) -> Self {
        Self(number.to_string().into())
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_integer(json: &str) -> bool {
    let digits = json.strip_prefix('-').unwrap_or(json);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}
