//! `_meta` of requests.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::jsonrpc::{ID_BYTES_MAX, RequestId, RpcError};
use crate::text::{self, ObjectMembers};
use crate::{Capabilities, LogLevel, idempotency};

/// The key by which a stateless request names its protocol version.
pub(crate) const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
const LOG_LEVEL_KEY: &str = "io.modelcontextprotocol/logLevel";
const PROGRESS_TOKEN_KEY: &str = "progressToken";

/// What a stateless request says about itself and its client.
#[derive(Debug)]
pub(crate) struct StatelessMeta<'a> {
    /// Any text: the routing compares it with the header and with the revisions.
    pub(crate) protocol_version: Cow<'a, str>,
    pub(crate) capabilities: Capabilities,
    pub(crate) progress_token: Option<RequestId>,
    pub(crate) log_level: Option<LogLevel>,
    pub(crate) idempotency_key: Option<&'a RawValue>,
    pub(crate) is_repeated: bool,
    pub(crate) relayed_ms: Option<u64>,
}

impl<'a> StatelessMeta<'a> {
    /// A missing or wrong member makes the whole request malformed.
    pub(crate) fn parse(meta: Option<&ObjectMembers<'a>>) -> Result<Self, RpcError> {
        let wrong = |what: &str| RpcError::malformed_params(format!("`_meta` is not valid: {what}"));
        let meta = meta.ok_or_else(|| wrong("it is missing; every request of this revision needs it"))?;
        let member = |name: &str| {
            let mut values = meta.values(name);
            match (values.next(), values.next()) {
                (_, Some(_)) => Err(wrong(&format!("`{name}` occurs twice"))),
                (value, None) => Ok(value.filter(|value| value.get() != "null")),
            }
        };
        Ok(Self {
            protocol_version: member(VERSION_KEY)?
                .and_then(text::string)
                .ok_or_else(|| wrong("`io.modelcontextprotocol/protocolVersion` must be a string"))?,
            capabilities: member(CAPABILITIES_KEY)?
                .and_then(Capabilities::parse)
                .ok_or_else(|| wrong("`io.modelcontextprotocol/clientCapabilities` must be an object"))?,
            progress_token: member(PROGRESS_TOKEN_KEY)?
                .map(|token| RequestId::parse(token).ok_or_else(|| wrong(&token_rule())))
                .transpose()?,
            log_level: member(LOG_LEVEL_KEY)?
                .map(|level| {
                    serde_json::from_str(level.get())
                        .map_err(|_| wrong("`io.modelcontextprotocol/logLevel` must be one of the eight levels"))
                })
                .transpose()?,
            idempotency_key: member(idempotency::META_KEY)?,
            is_repeated: member(idempotency::REPEATED_META_KEY)?.is_some_and(is_true),
            relayed_ms: member(idempotency::RELAYED_META_KEY)?.and_then(whole_number),
        })
    }
}

/// The idempotency key of a request in a session.
pub(crate) fn session_idempotency_key<'a>(meta: Option<&ObjectMembers<'a>>) -> Option<&'a RawValue> {
    meta?.get(idempotency::META_KEY).filter(|key| key.get() != "null")
}

/// Whether a request was sent to an earlier server, too, and may have run there.
pub(crate) fn is_repeated(meta: Option<&ObjectMembers<'_>>) -> bool {
    meta.and_then(|meta| meta.get(idempotency::REPEATED_META_KEY)).is_some_and(is_true)
}

/// When the process that relays a call in a session first sent it, in milliseconds since 1970. `None` unless that process
/// added the idempotency key.
pub(crate) fn session_relayed_ms(meta: Option<&ObjectMembers<'_>>) -> Option<u64> {
    meta?.get(idempotency::RELAYED_META_KEY).and_then(whole_number)
}

fn whole_number(value: &RawValue) -> Option<u64> {
    value.get().parse().ok()
}

fn is_true(value: &RawValue) -> bool {
    value.get() == "true"
}

/// The progress token of a request in a session, where `_meta` and everything in it is optional.
pub(crate) fn session_progress_token(meta: Option<&ObjectMembers<'_>>) -> Result<Option<RequestId>, RpcError> {
    let token = meta.and_then(|meta| meta.get(PROGRESS_TOKEN_KEY)).filter(|token| token.get() != "null");
    let wrong = || RpcError::invalid_params(format!("`_meta` is not valid: {}", token_rule()));
    token.map(|token| RequestId::parse(token).ok_or_else(wrong)).transpose()
}

fn token_rule() -> String {
    format!("`progressToken` must be a string or an integer of at most {ID_BYTES_MAX} bytes")
}
