use std::borrow::Cow;

use longhaul_task::{Json, TaskError};
use serde_json::value::RawValue;

use crate::text;

/// An error as it goes over the wire. The constructors are the cases that the protocol knows; everything else is
/// [`RpcError::new`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} ({code})")]
pub struct RpcError {
    /// The protocol's code.
    pub code: i64,
    /// One sentence.
    pub message: Cow<'static, str>,
    /// Details.
    pub data: Option<Json>,
    http_status: u16,
    retry_after_ms: Option<u64>,
}

/// The codes that the protocol defines.
pub mod code {
    /// Not JSON.
    pub const PARSE: i64 = -32700;
    /// JSON, but no message.
    pub const INVALID_REQUEST: i64 = -32600;
    /// No such method here.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// Parameters that do not fit the method.
    pub const INVALID_PARAMS: i64 = -32602;
    /// Something went wrong here.
    pub const INTERNAL: i64 = -32603;
    /// No such resource, in the revisions of sessions.
    pub const RESOURCE_NOT_FOUND: i64 = -32002;
    /// The HTTP headers say something else than the body.
    pub const HEADER_MISMATCH: i64 = -32020;
    /// The client did not declare something that the request needs.
    pub const MISSING_CAPABILITY: i64 = -32021;
    /// A protocol version that is not spoken here.
    pub const UNSUPPORTED_VERSION: i64 = -32022;
}

impl RpcError {
    /// Any error inside a well-formed request. HTTP carries it with status 200.
    pub fn new(code: i64, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), data: None, http_status: 200, retry_after_ms: None }
    }

    /// The same error with details.
    pub fn with_data(mut self, data: Json) -> Self {
        self.data = Some(data);
        self
    }

    /// The same error with another status of its HTTP response.
    pub fn with_status(mut self, http_status: u16) -> Self {
        self.http_status = http_status;
        self
    }

    /// Not JSON.
    pub fn parse(why: &str) -> Self {
        Self::new(code::PARSE, format!("Parse error: {why}")).with_status(400)
    }

    /// Not JSON: where the reader of the whole message stopped.
    pub(super) fn not_json(error: &serde_json::Error) -> Self {
        let what = if error.is_eof() { "the message ends before its JSON does" } else { "the message is not JSON" };
        Self::parse(&format!("{what} (line {}, column {})", error.line(), error.column()))
    }

    /// JSON, but no message.
    pub fn invalid_request(why: &str) -> Self {
        Self::new(code::INVALID_REQUEST, format!("Invalid request: {why}")).with_status(400)
    }

    /// Parameters that do not fit the method.
    pub fn invalid_params(why: impl Into<Cow<'static, str>>) -> Self {
        Self::new(code::INVALID_PARAMS, why)
    }

    /// Parameters that make the whole request malformed: not an object, or without the required `_meta`.
    pub fn malformed_params(why: impl Into<Cow<'static, str>>) -> Self {
        Self::new(code::INVALID_PARAMS, why).with_status(400)
    }

    /// Something went wrong here.
    pub fn internal(why: impl Into<Cow<'static, str>>) -> Self {
        Self::new(code::INTERNAL, why)
    }

    /// A refusal that passes with time: our own word for it, and after how long the client may try again. Both stand in
    /// the details.
    pub fn try_later(word: &str, why: impl Into<Cow<'static, str>>, retry_after_ms: u64) -> Self {
        let data = Json::from_text(format!("{{\"code\":\"{word}\",\"retryAfterMs\":{retry_after_ms}}}"));
        Self { retry_after_ms: Some(retry_after_ms), ..Self::internal(why).with_data(data) }
    }

    /// The HTTP headers say something else than the body.
    pub fn header_mismatch(why: &str) -> Self {
        Self::new(code::HEADER_MISMATCH, format!("Header mismatch: {why}")).with_status(400)
    }

    /// The client did not declare something that the request needs; `required` is the JSON of the capabilities.
    pub fn missing_capability(required: &str) -> Self {
        let data = Json::from_text(format!("{{\"requiredCapabilities\":{required}}}"));
        Self::new(code::MISSING_CAPABILITY, "Missing required client capability").with_data(data).with_status(400)
    }

    /// A protocol version that is not spoken here.
    pub fn unsupported_version(supported: &[&str], requested: &str) -> Self {
        let mut data = String::from("{\"supported\":[");
        for (index, version) in supported.iter().enumerate() {
            if index > 0 {
                data.push(',');
            }
            text::push_str(&mut data, version);
        }
        data.push(']');
        text::push_str_member(&mut data, "requested", requested);
        data.push('}');
        let message = format!("Unsupported protocol version; spoken here: {}", supported.join(", "));
        Self::new(code::UNSUPPORTED_VERSION, message).with_data(Json::from_text(data)).with_status(400)
    }

    /// The status of the HTTP response that carries this error.
    pub fn http_status(&self) -> u16 {
        self.http_status
    }

    /// After how long it is worth trying again, if that is known.
    pub fn retry_after_ms(&self) -> Option<u64> {
        self.retry_after_ms
    }

    /// Whether the code is one of JSON-RPC or MCP. Other codes are those of an application or its user.
    pub fn is_of_protocol(&self) -> bool {
        (-32_768..=-32_000).contains(&self.code)
    }

    /// Appends the error object.
    pub(crate) fn write(&self, out: &mut String) {
        write_error(out, self.code, &self.message, self.data.as_ref());
    }

    /// Reads the error object of a response.
    pub(super) fn read(raw: &RawValue) -> Option<Self> {
        #[derive(serde::Deserialize)]
        struct Object<'a> {
            code: i64,
            message: String,
            #[serde(borrow, default)]
            data: Option<&'a RawValue>,
        }
        let object: Object<'_> = serde_json::from_str(raw.get()).ok()?;
        let mut error = Self::new(object.code, object.message);
        error.data = object.data.map(|data| Json::from_text(data.get()));
        Some(error)
    }
}

/// What a task was refused with is what its call would have been answered with.
impl From<&TaskError> for RpcError {
    fn from(fault: &TaskError) -> Self {
        let mut error = Self::new(fault_code(fault), fault.message.to_string());
        error.data.clone_from(&fault.data);
        error
    }
}

/// The code that a handler chose; an ending of the engine's own is an internal error.
fn fault_code(fault: &TaskError) -> i64 {
    fault.code.unwrap_or(code::INTERNAL)
}

/// Appends an error object.
pub(crate) fn write_error(out: &mut String, code: i64, message: &str, data: Option<&Json>) {
    out.push_str("{\"code\":");
    out.push_str(&code.to_string());
    text::push_str_member(out, "message", message);
    if let Some(data) = data {
        text::push_raw_member(out, "data", data.as_str());
    }
    out.push('}');
}

/// What the error of a derived reader says, before the name, about a key that occurs twice.
pub(crate) const DUPLICATE_FIELD: &str = "duplicate field ";

/// Why a part of a message cannot be read. The position is left out, because it counts from the start of the part.
pub(crate) fn describe_read_error(error: &serde_json::Error) -> String {
    let why = error.to_string();
    let why = why.rsplit_once(" at line ").map_or(&*why, |(why, _)| why);
    match why.strip_prefix(DUPLICATE_FIELD) {
        Some(name) => format!("{} occurs twice", quote(name)),
        None if !error.is_syntax() => quote(why).into_owned(),
        // The message was read as JSON before, without a look at its depth and at the values of its numbers and escapes.
        None if why == "number out of range" => "a number is too large".to_owned(),
        None if why == "recursion limit exceeded" => "it is nested too deeply".to_owned(),
        None if why.ends_with("hex escape") || why == "invalid unicode code point" => {
            "a string has a Unicode escape that stands for no character".to_owned()
        }
        None => "it cannot be read".to_owned(),
    }
}

/// The most characters of a caller's text that an error message repeats.
const SHOWN_CHARS_MAX: usize = 128;

/// The text of a caller, shortened for an error message.
pub fn quote(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}
