use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::Params;
use crate::jsonrpc::{RequestId, RpcError};
use crate::{Capabilities, LogLevel, text};

/// What a request says about itself and its client.
#[derive(Debug, Clone)]
pub struct Meta<'a> {
    /// The protocol version it is made at. [`accept`](super::accept) has checked it.
    pub protocol_version: Cow<'a, str>,
    /// What the client can do.
    pub capabilities: Capabilities,
    /// Under what name it wants to hear of progress.
    pub progress_token: Option<RequestId>,
    /// From which severity on it wants to hear log messages; none, unless it says so.
    pub log_level: Option<LogLevel>,
    /// Who the client says it is: for display and logs, never for decisions.
    pub client_info: Option<&'a RawValue>,
}

impl<'a> Meta<'a> {
    /// Reads the metadata of a request. What is required and missing makes the whole request malformed.
    pub fn parse(params: &Params<'a>) -> Result<Self, RpcError> {
        #[derive(Deserialize)]
        struct Members<'a> {
            #[serde(rename = "io.modelcontextprotocol/protocolVersion", borrow, default)]
            protocol_version: Option<&'a RawValue>,
            #[serde(rename = "io.modelcontextprotocol/clientCapabilities", borrow, default)]
            capabilities: Option<&'a RawValue>,
            #[serde(rename = "io.modelcontextprotocol/clientInfo", borrow, default)]
            client_info: Option<&'a RawValue>,
            #[serde(rename = "io.modelcontextprotocol/logLevel", borrow, default)]
            log_level: Option<&'a RawValue>,
            #[serde(rename = "progressToken", borrow, default)]
            progress_token: Option<&'a RawValue>,
        }
        let wrong = |what: &str| RpcError::malformed_params(format!("`_meta` is not valid: {what}"));
        let meta = params.meta.ok_or_else(|| wrong("it is missing; every request of this revision needs it"))?;
        if !text::is_object(meta) {
            return Err(wrong("it must be an object"));
        }
        let members: Members<'a> = serde_json::from_str(meta.get()).map_err(|error| wrong(&error.to_string()))?;
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
                .map(|token| {
                    RequestId::parse(token).ok_or_else(|| wrong("`progressToken` must be a string or integer"))
                })
                .transpose()?,
            log_level: members
                .log_level
                .map(|level| {
                    serde_json::from_str(level.get())
                        .map_err(|_| wrong("`io.modelcontextprotocol/logLevel` must be one of the eight levels"))
                })
                .transpose()?,
            client_info: members.client_info,
        })
    }
}
