//! `initialize`: the handshake that opens a session.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::params::Params;
use super::{Peer, Revision};
use crate::Capabilities;
use crate::jsonrpc::{self, RequestId, RpcError};
use crate::params::required_string;
use crate::text;

/// The method's name.
pub const METHOD: &str = "initialize";

/// What a client opens a session with.
#[derive(Debug)]
pub struct Initialize<'a> {
    /// What the session will know about it: the negotiated revision, and what the client can do in it.
    pub peer: Peer,
    /// The version that it asked for.
    pub requested: Cow<'a, str>,
    /// The name that it gives itself, for logs and never for decisions.
    pub client_name: Cow<'a, str>,
    /// Its own version.
    pub client_version: Cow<'a, str>,
}

impl<'a> Initialize<'a> {
    /// Reads the handshake. Any version is taken: the answer says what will be spoken, and the client may leave.
    pub fn parse(params: Option<&'a RawValue>) -> Result<Self, RpcError> {
        let params = Params::parse(params)?;
        let requested = required_string("protocolVersion", params.protocol_version)?;
        let declared = params
            .capabilities
            .and_then(Capabilities::parse)
            .ok_or_else(|| RpcError::invalid_params("`capabilities` must be an object"))?;
        let client = params.client_info.filter(|info| text::is_object(info));
        let client = client.ok_or_else(|| RpcError::invalid_params("`clientInfo` must be an object"))?;
        Ok(Self {
            peer: Peer::new(Revision::negotiate(&requested), declared),
            requested,
            client_name: required_string("clientInfo.name", text::member(client, "name"))?,
            client_version: required_string("clientInfo.version", text::member(client, "version"))?,
        })
    }
}

/// What the server says of itself to one client. Everything in it holds for this client: what it may not do is not
/// offered to it.
#[derive(Debug, Clone, Copy)]
pub struct Offer<'a> {
    /// The server's name.
    pub name: &'a str,
    /// A name for people.
    pub title: Option<&'a str>,
    /// The server's version.
    pub version: &'a str,
    /// How models should use it.
    pub instructions: Option<&'a str>,
    /// Whether it tells when its tools change.
    pub tells_tool_changes: bool,
    /// Whether this client can list its tasks: only one that can be told from others.
    pub lists_tasks: bool,
}

/// The answer.
pub fn answer(id: &RequestId, revision: Revision, offer: &Offer<'_>) -> String {
    jsonrpc::response(id, 512 + offer.instructions.map_or(0, str::len), |out| {
        out.push_str("{\"protocolVersion\":\"");
        out.push_str(revision.as_str());
        out.push_str("\",\"capabilities\":{\"logging\":{},\"tools\":{");
        if offer.tells_tool_changes {
            out.push_str("\"listChanged\":true");
        }
        out.push('}');
        if revision.has_tasks() {
            out.push_str(",\"tasks\":{");
            if offer.lists_tasks {
                out.push_str("\"list\":{},");
            }
            out.push_str("\"cancel\":{},\"requests\":{\"tools\":{\"call\":{}}}}");
        }
        out.push_str("},\"serverInfo\":{\"name\":");
        text::push_str(out, offer.name);
        if let Some(title) = offer.title.filter(|_| revision.has_titles()) {
            text::push_str_member(out, "title", title);
        }
        text::push_str_member(out, "version", offer.version);
        out.push('}');
        if let Some(instructions) = offer.instructions {
            text::push_str_member(out, "instructions", instructions);
        }
        out.push('}');
    })
}
