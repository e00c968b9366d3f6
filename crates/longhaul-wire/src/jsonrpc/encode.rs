use std::borrow::Cow;

use super::{RequestId, RpcError};
use crate::text;

/// Room for everything of a message that is not its payload.
const ENVELOPE_BYTES: usize = 64;

/// A response whose result `write` appends. `room` is a guess of how many bytes that takes, so that one allocation
/// is enough.
pub fn response(id: &RequestId, room: usize, write: impl FnOnce(&mut String)) -> String {
    let mut out = String::with_capacity(ENVELOPE_BYTES + id.as_json().len() + room);
    out.push_str("{\"jsonrpc\":\"2.0\",\"id\":");
    out.push_str(id.as_json());
    out.push_str(",\"result\":");
    write(&mut out);
    out.push('}');
    out
}

/// A response with a result that is JSON already.
pub fn result(id: &RequestId, result: &str) -> String {
    response(id, result.len(), |out| out.push_str(result))
}

/// A response with an error. Without an ID there is no `id` member: this protocol does not know `null` there.
pub fn error(id: Option<&RequestId>, error: &RpcError) -> String {
    let data = error.data.as_ref().map_or(0, longhaul_task::Json::bytes);
    let mut out = String::with_capacity(2 * ENVELOPE_BYTES + error.message.len() + data);
    out.push_str("{\"jsonrpc\":\"2.0\"");
    if let Some(id) = id {
        text::push_raw_member(&mut out, "id", id.as_json());
    }
    out.push_str(",\"error\":");
    error.write(&mut out);
    out.push('}');
    out
}

/// A request with parameters that are JSON already.
pub fn request(id: &RequestId, method: &str, params: &str) -> String {
    let mut out = String::with_capacity(ENVELOPE_BYTES + id.as_json().len() + method.len() + params.len());
    out.push_str("{\"jsonrpc\":\"2.0\",\"id\":");
    out.push_str(id.as_json());
    text::push_str_member(&mut out, "method", method);
    text::push_raw_member(&mut out, "params", params);
    out.push('}');
    out
}

/// A notification whose parameters `write` appends.
pub fn notification(method: &str, room: usize, write: impl FnOnce(&mut String)) -> String {
    let mut out = String::with_capacity(ENVELOPE_BYTES + method.len() + room);
    out.push_str("{\"jsonrpc\":\"2.0\"");
    text::push_str_member(&mut out, "method", method);
    out.push_str(",\"params\":");
    write(&mut out);
    out.push('}');
    out
}

/// The same message on one line, for transports that frame by line. Payloads keep the bytes they came with, and some
/// come pretty-printed.
pub fn one_line(message: &str) -> Cow<'_, str> {
    text::one_line(message)
}
