//! Which era a message belongs to.

use std::borrow::Cow;
use std::collections::HashMap;

use longhaul_wire::jsonrpc::{self, Message};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The key by which a request of the stateless era says its version.
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";

/// Whether a message says about itself that it is a request of the stateless era, of whatever version. Everything else
/// is part of a session, or opens one.
///
/// ```
/// use longhaul_receiver::is_stateless;
///
/// let of = |params: &str| {
///     is_stateless(format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{params}}}"#).as_bytes())
/// };
/// assert!(of(r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#));
/// assert!(!of(r#"{"_meta":{"progressToken":1}}"#));
/// assert!(!of(r#"{"arguments":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#));
/// ```
pub fn is_stateless(message: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(rename = "_meta", borrow, default)]
        meta: Option<HashMap<Cow<'a, str>, &'a RawValue>>,
    }
    // A search is many times faster than a walk, and no message of a session has the word.
    if !std::str::from_utf8(message).is_ok_and(|text| text.contains(VERSION_KEY)) {
        return false;
    }
    let Ok(Message::Request(request)) = jsonrpc::parse(message) else { return false };
    let params = request.params.and_then(|params| serde_json::from_str::<Params<'_>>(params.get()).ok());
    params.is_some_and(|params| params.meta.is_some_and(|meta| meta.contains_key(VERSION_KEY)))
}
