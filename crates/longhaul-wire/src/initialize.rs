//! `initialize`: the handshake that opens a session.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::jsonrpc::{self, RpcError, describe_read_error};
use crate::params::required_string;
use crate::{Capabilities, Peer, ReplyTo, Revision, ServerFeatures, text};

pub const METHOD: &str = "initialize";

/// The parameters of the handshake.
#[derive(Debug)]
pub struct Initialize<'a> {
    /// The negotiated revision, and what the client can do in it.
    pub peer: Peer,
    /// The version that the client asked for.
    pub requested: Cow<'a, str>,
    /// For logs, never for decisions.
    pub client_name: Cow<'a, str>,
    pub client_version: Cow<'a, str>,
}

impl<'a> Initialize<'a> {
    /// Any requested version is accepted: the answer names the revision of the session, and the client may leave.
    pub fn parse(params: Option<&'a RawValue>) -> Result<Self, RpcError> {
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct InitializeParams<'a> {
            #[serde(borrow, default)]
            protocol_version: Option<&'a RawValue>,
            #[serde(borrow, default)]
            capabilities: Option<&'a RawValue>,
            #[serde(borrow, default)]
            client_info: Option<&'a RawValue>,
        }
        let params: InitializeParams<'a> = params
            .map_or_else(|| Ok(InitializeParams::default()), |params| serde_json::from_str(params.get()))
            .map_err(|error| format!("`params` cannot be read: {}", describe_read_error(&error)))
            .map_err(RpcError::invalid_params)?;
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

/// What the server offers to one client. An offer that does not hold for this client is left out.
#[derive(Debug, Clone, Copy)]
pub struct Offer<'a> {
    pub name: &'a str,
    /// For people.
    pub title: Option<&'a str>,
    pub version: &'a str,
    /// For models: how to use the server.
    pub instructions: Option<&'a str>,
    pub features: ServerFeatures,
    /// Only for a client that can be told from others.
    pub lists_tasks: bool,
}

/// `to.revision` is the negotiated revision.
pub fn answer(to: &ReplyTo<'_>, offer: &Offer<'_>) -> String {
    let revision = to.revision;
    jsonrpc::response(to.id, 512 + offer.instructions.map_or(0, str::len), |out| {
        out.push_str("{\"protocolVersion\":\"");
        out.push_str(revision.as_str());
        out.push_str("\",\"capabilities\":{");
        offer.features.write(out);
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
