//! HTTP headers: those that repeat parts of the body must agree with it.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;

use crate::jsonrpc::{RpcError, quote};
use crate::text;
use crate::tool::{Mirror, MirrorKind, ToolDeclaration};

/// The value of one header field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderValue<'a> {
    Absent,
    Once(&'a [u8]),
    /// Sent several times. A proxy may have read another one of the values than this server would.
    Repeated,
}

/// The headers of an HTTP request, independent of the library that parsed them.
pub trait Headers {
    /// The value of a field, by its name in lower case.
    fn value(&self, name: &str) -> HeaderValue<'_>;
}

/// Names and values, as in tests and small hosts.
impl Headers for &[(&str, &str)] {
    fn value(&self, name: &str) -> HeaderValue<'_> {
        let mut sent = self.iter().filter(|(sent, _)| sent.eq_ignore_ascii_case(name));
        match (sent.next(), sent.next()) {
            (None, _) => HeaderValue::Absent,
            (Some((_, value)), None) => HeaderValue::Once(value.as_bytes()),
            (Some(_), Some(_)) => HeaderValue::Repeated,
        }
    }
}

/// Name of the header that repeats the protocol version.
pub(crate) const VERSION: &str = "mcp-protocol-version";

/// `MCP-Protocol-Version` says the same as the body.
pub(crate) fn check_version(headers: &dyn Headers, version: &str) -> Result<(), RpcError> {
    must_equal(VERSION, plain(headers, VERSION)?, version)
}

/// `Mcp-Method` says the same as the body.
pub(crate) fn check_method(headers: &dyn Headers, method: &str) -> Result<(), RpcError> {
    must_equal("mcp-method", plain(headers, "mcp-method")?, method)
}

/// `Mcp-Name` says the same as the body, for the methods that have a name. A body without a name, or with one that is
/// no string, passes: the operation refuses it with a better reason.
pub(crate) fn check_name(headers: &dyn Headers, name: Option<&RawValue>) -> Result<(), RpcError> {
    match name.and_then(text::string) {
        Some(name) => must_equal("mcp-name", decoded(headers, "mcp-name")?, &name),
        None => Ok(()),
    }
}

/// The `Mcp-Param-*` headers of a call say the same as its arguments.
pub fn check_mirrored(headers: &dyn Headers, tool: &ToolDeclaration, arguments: &RawValue) -> Result<(), RpcError> {
    tool.mirrors().iter().try_for_each(|mirror| check_mirror(headers, mirror, arguments))
}

fn check_mirror(headers: &dyn Headers, mirror: &Mirror, arguments: &RawValue) -> Result<(), RpcError> {
    let sent = decoded(headers, &mirror.header)?;
    let value = mirror
        .path
        .iter()
        .try_fold(arguments, |object, name| text::member(object, name))
        .filter(|value| value.get() != "null");
    let Some(value) = value else {
        return match sent {
            // A proxy that routed by this header used a value that the call does not have.
            Some(_) => Err(mismatch(&mirror.header, "is sent, but the argument is not")),
            None => Ok(()),
        };
    };
    match mirror.kind {
        MirrorKind::Text => match text::string(value) {
            Some(text) => must_equal(&mirror.header, sent, &text),
            None => Ok(()),
        },
        MirrorKind::Boolean => match value.get() {
            word @ ("true" | "false") => must_equal(&mirror.header, sent, word),
            _ => Ok(()),
        },
        MirrorKind::Integer => match safe_integer(value.get()) {
            // By value: 42.0 is 42.
            Some(number) if sent.as_deref().and_then(safe_integer) == Some(number) => Ok(()),
            Some(_) => must_equal(&mirror.header, sent, value.get()),
            None if value.get().starts_with(['"', '{', '[', 't', 'f']) => Ok(()),
            None => Err(mismatch(&mirror.header, "mirrors a number that is no safe integer")),
        },
    }
}

/// A whole number that every JSON reader keeps exact.
fn safe_integer(text: &str) -> Option<i64> {
    text::safe_integer(text.parse().ok()?)
}

fn mismatch(header: &str, why: &str) -> RpcError {
    RpcError::header_mismatch(&format!("{header} {why}"))
}

fn must_equal(header: &str, sent: Option<Cow<'_, str>>, body: &str) -> Result<(), RpcError> {
    match sent {
        None => Err(mismatch(header, "is missing")),
        Some(sent) if sent == body => Ok(()),
        Some(sent) => Err(mismatch(header, &format!("is '{}', but the body says '{}'", quote(&sent), quote(body)))),
    }
}

/// The value of a header that is never encoded.
fn plain<'h>(headers: &'h dyn Headers, name: &str) -> Result<Option<Cow<'h, str>>, RpcError> {
    let bytes = match headers.value(name) {
        HeaderValue::Absent => return Ok(None),
        HeaderValue::Repeated => return Err(mismatch(name, "is sent more than once")),
        HeaderValue::Once(bytes) => bytes.trim_ascii(),
    };
    let is_visible = |byte: &u8| matches!(byte, b'\t' | b' '..=b'~');
    // `fold` has no early exit, so that the compiler can check many bytes at once.
    match std::str::from_utf8(bytes) {
        Ok(text) if bytes.iter().fold(true, |all, byte| all & is_visible(byte)) => Ok(Some(Cow::Borrowed(text))),
        _ => Err(mismatch(name, "has characters that a header cannot have")),
    }
}

/// Prefix and suffix of a value that is encoded because a header cannot hold it as it is.
const ENCODED: (&str, &str) = ("=?base64?", "?=");

/// The value of a header that may be encoded.
fn decoded<'h>(headers: &'h dyn Headers, name: &str) -> Result<Option<Cow<'h, str>>, RpcError> {
    let Some(sent) = plain(headers, name)? else {
        return Ok(None);
    };
    let Some(base64) = sent.strip_prefix(ENCODED.0).and_then(|rest| rest.strip_suffix(ENCODED.1)) else {
        return Ok(Some(sent));
    };
    let bytes = STANDARD.decode(base64).map_err(|_| mismatch(name, "is not valid Base64"))?;
    let text = String::from_utf8(bytes).map_err(|_| mismatch(name, "is not UTF-8 once it is decoded"))?;
    Ok(Some(Cow::Owned(text)))
}

/// Encodes a value the way clients put it into `Mcp-Name` and `Mcp-Param-*`.
///
/// ```
/// use longhaul_wire::headers::encode_value;
///
/// assert_eq!(encode_value("us-west1"), "us-west1");
/// assert_eq!(encode_value(" padded "), "=?base64?IHBhZGRlZCA=?=");
/// ```
pub fn encode_value(value: &str) -> Cow<'_, str> {
    let is_safe = value.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~'))
        && value.trim_ascii() == value
        && !(value.starts_with(ENCODED.0) && value.ends_with(ENCODED.1));
    if is_safe {
        Cow::Borrowed(value)
    } else {
        Cow::Owned(format!("{}{}{}", ENCODED.0, STANDARD.encode(value), ENCODED.1))
    }
}
