//! Which era a request belongs to.

use std::borrow::Cow;
use std::collections::HashMap;

use longhaul_wire::jsonrpc::Request;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The key by which a request of the stateless era says its version.
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";

/// Whether a request says about itself that it is one of the stateless era, of whatever version. Everything else is part
/// of a session, or opens one.
///
/// ```
/// use longhaul_receiver::is_stateless;
/// use longhaul_wire::jsonrpc::{self, Message};
///
/// let of = |params: &str| {
///     let bytes = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{params}}}"#);
///     let Ok(Message::Request(request)) = jsonrpc::parse(bytes.as_bytes()) else { panic!() };
///     is_stateless(&request)
/// };
/// assert!(of(r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#));
/// assert!(!of(r#"{"_meta":{"progressToken":1}}"#));
/// assert!(!of(r#"{"arguments":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#));
/// ```
pub fn is_stateless(request: &Request<'_>) -> bool {
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(rename = "_meta", borrow, default)]
        meta: Option<HashMap<Cow<'a, str>, &'a RawValue>>,
    }
    // A search is many times faster than a walk, and most messages do not have the word.
    let Some(params) = request.params.filter(|params| params.get().contains(VERSION_KEY)) else { return false };
    let params = serde_json::from_str::<Params<'_>>(params.get());
    params.is_ok_and(|params| params.meta.is_some_and(|meta| meta.contains_key(VERSION_KEY)))
}
