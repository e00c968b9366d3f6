//! `_meta` of requests.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::jsonrpc::{ID_BYTES_MAX, RequestId, RpcError, part_fault};
use crate::{Capabilities, LogLevel, idempotency, text};

/// The key by which a stateless request names its protocol version.
pub(crate) const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";

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
    pub(crate) fn parse(meta: Option<&'a RawValue>) -> Result<Self, RpcError> {
        #[derive(Deserialize)]
        struct MetaMembers<'a> {
            #[serde(rename = "io.modelcontextprotocol/protocolVersion", borrow, default)]
            protocol_version: Option<&'a RawValue>,
            #[serde(rename = "io.modelcontextprotocol/clientCapabilities", borrow, default)]
            capabilities: Option<&'a RawValue>,
            #[serde(rename = "io.modelcontextprotocol/logLevel", borrow, default)]
            log_level: Option<&'a RawValue>,
            #[serde(rename = "progressToken", borrow, default)]
            progress_token: Option<&'a RawValue>,
            #[serde(rename = "longhaul/idempotency-key", borrow, default)]
            idempotency_key: Option<&'a RawValue>,
            #[serde(rename = "longhaul/repeated", borrow, default)]
            repeated: Option<&'a RawValue>,
            #[serde(rename = "longhaul/relayed", borrow, default)]
            relayed: Option<&'a RawValue>,
        }
        let wrong = |what: &str| RpcError::malformed_params(format!("`_meta` is not valid: {what}"));
        let meta = meta.ok_or_else(|| wrong("it is missing; every request of this revision needs it"))?;
        if !text::is_object(meta) {
            return Err(wrong("it must be an object"));
        }
        let members: MetaMembers<'a> = serde_json::from_str(meta.get()).map_err(|error| wrong(&part_fault(&error)))?;
        Ok(Self {
            protocol_version: members
                .protocol_version
                .and_then(text::string)
                .ok_or_else(|| wrong("`io.modelcontextprotocol/protocolVersion` must be a string"))?,
            capabilities: members
                .capabilities
                .and_then(Capabilities::parse)
                .ok_or_else(|| wrong("`io.modelcontextprotocol/clientCapabilities` must be an object"))?,
            progress_token: members
                .progress_token
                .map(|token| RequestId::parse(token).ok_or_else(|| wrong(&token_rule())))
                .transpose()?,
            log_level: members
                .log_level
                .map(|level| {
                    serde_json::from_str(level.get())
                        .map_err(|_| wrong("`io.modelcontextprotocol/logLevel` must be one of the eight levels"))
                })
                .transpose()?,
            idempotency_key: members.idempotency_key,
            is_repeated: members.repeated.is_some_and(is_true),
            relayed_ms: members.relayed.and_then(whole_number),
        })
    }
}

/// The idempotency key of a request in a session.
pub(crate) fn session_idempotency_key(meta: Option<&RawValue>) -> Option<&RawValue> {
    text::member(meta?, idempotency::META_KEY).filter(|key| key.get() != "null")
}

/// Whether a request was sent to an earlier server, too, and may have run there.
pub(crate) fn is_repeated(meta: Option<&RawValue>) -> bool {
    meta.and_then(|meta| text::member(meta, idempotency::REPEATED_META_KEY)).is_some_and(is_true)
}

/// When the process that relays a call in a session first sent it, in milliseconds since 1970. `None` unless that process
/// added the idempotency key.
pub(crate) fn session_relayed_ms(meta: Option<&RawValue>) -> Option<u64> {
    text::member(meta?, idempotency::RELAYED_META_KEY).and_then(whole_number)
}

fn whole_number(value: &RawValue) -> Option<u64> {
    value.get().parse().ok()
}

fn is_true(value: &RawValue) -> bool {
    value.get() == "true"
}

/// The progress token of a request in a session, where `_meta` and everything in it is optional.
pub(crate) fn session_progress_token(meta: Option<&RawValue>) -> Result<Option<RequestId>, RpcError> {
    let wrong = |what: &str| RpcError::invalid_params(format!("`_meta` is not valid: {what}"));
    let Some(meta) = meta else {
        return Ok(None);
    };
    if !text::is_object(meta) {
        return Err(wrong("it must be an object"));
    }
    let token = text::member(meta, "progressToken").filter(|token| token.get() != "null");
    token.map(|token| RequestId::parse(token).ok_or_else(|| wrong(&token_rule()))).transpose()
}

fn token_rule() -> String {
    format!("`progressToken` must be a string or an integer of at most {ID_BYTES_MAX} bytes")
}
