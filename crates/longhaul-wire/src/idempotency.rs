//! The idempotency key of a call: a client that repeats a request under the same key gets the same task.
//!
//! No revision of the protocol defines one. So the key is a member of `_meta` with a name of Longhaul's own, or the HTTP
//! header that other APIs use.

use std::borrow::Cow;

use crate::headers::{HeaderValue, Headers};
use crate::jsonrpc::RpcError;
use crate::{CallTool, refusal, text};

/// The member of `_meta` that has the key.
pub const META_KEY: &str = "longhaul/idempotency-key";

/// The member of `_meta` of a request that was sent to an earlier server, too, and may have run there. If it becomes a task, a
/// task that exists is found by the idempotency key. Otherwise a call of a tool is refused, because it could run twice, and
/// a prompt or a read is done again.
pub const REPEATED_META_KEY: &str = "longhaul/repeated";

/// The member of `_meta` of a request whose key was not chosen by its client, but added by a process that relays the request.
/// Its value is the time at which that process first sent the request, in milliseconds since 1970. Such a request can join a
/// task like one without a key.
pub const RELAYED_META_KEY: &str = "longhaul/relayed";

/// The name of the HTTP header.
const HEADER: &str = "idempotency-key";

/// The maximum length of a key. It is stored with its task, in a row that should stay small.
const IDEMPOTENCY_KEY_BYTES_MAX: usize = 255;

impl<'a> CallTool<'a> {
    /// The idempotency key of the call, from its `_meta` or its HTTP headers.
    pub fn idempotency_key<'h: 'a>(&self, headers: Option<&'h dyn Headers>) -> Result<Option<Cow<'a, str>>, RpcError> {
        let wrong = refusal::bad_idempotency_key;
        let in_meta = match self.idempotency_key {
            None => None,
            Some(key) => Some(text::string(key).ok_or_else(|| wrong("it must be a string"))?),
        };
        let in_header = match headers.map_or(HeaderValue::Absent, |headers| headers.value(HEADER)) {
            HeaderValue::Absent => None,
            HeaderValue::Repeated => return Err(wrong("the header is sent more than once")),
            HeaderValue::Once(bytes) => Some(header_key(bytes)?),
        };
        let key = match (in_meta, in_header) {
            (Some(in_meta), Some(in_header)) if in_meta != in_header => {
                return Err(wrong("`_meta` and the header Idempotency-Key have different keys"));
            }
            (in_meta, in_header) => in_meta.or(in_header),
        };
        key.as_deref().map(check).transpose()?;
        Ok(key)
    }
}

/// Refuses a key that cannot be stored.
pub(crate) fn check(key: &str) -> Result<(), RpcError> {
    let wrong = refusal::bad_idempotency_key;
    match key {
        "" => Err(wrong("it is empty")),
        _ if key.len() > IDEMPOTENCY_KEY_BYTES_MAX => {
            Err(wrong(&format!("it has {} bytes; at most {IDEMPOTENCY_KEY_BYTES_MAX} are allowed", key.len())))
        }
        _ if key.chars().any(char::is_control) => Err(wrong("it has control characters")),
        _ => Ok(()),
    }
}

/// Reads the key in a header: in quotation marks, as the draft of the IETF defines it, or without, as most clients send it.
fn header_key(bytes: &[u8]) -> Result<Cow<'_, str>, RpcError> {
    let wrong = refusal::bad_idempotency_key;
    let sent = std::str::from_utf8(bytes).map_err(|_| wrong("the header is not UTF-8"))?.trim_ascii();
    let Some(quoted) = sent.strip_prefix('"') else { return Ok(Cow::Borrowed(sent)) };
    let quoted = quoted.strip_suffix('"').ok_or_else(|| wrong("the header has only one quotation mark"))?;
    let mut key = String::with_capacity(quoted.len());
    let mut characters = quoted.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => return Err(wrong("the header has a quotation mark inside of the key")),
            '\\' => match characters.next() {
                Some(escaped @ ('"' | '\\')) => key.push(escaped),
                _ => return Err(wrong("the header has a backslash that escapes nothing")),
            },
            character => key.push(character),
        }
    }
    Ok(Cow::Owned(key))
}
