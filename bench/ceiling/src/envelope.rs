//! The JSON-RPC envelope of a request. It borrows from the body where the JSON has no escapes.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
pub struct Envelope<'a> {
    #[serde(borrow)]
    pub jsonrpc: Cow<'a, str>,
    #[serde(borrow)]
    pub id: &'a RawValue,
    #[serde(borrow)]
    pub method: Cow<'a, str>,
    #[serde(borrow)]
    pub params: Params<'a>,
}

/// The parameters of `tools/call` and `tasks/get`. A missing field is empty.
#[derive(Deserialize)]
pub struct Params<'a> {
    #[serde(borrow, default, rename = "taskId")]
    pub task_id: Cow<'a, str>,
    #[serde(borrow, default)]
    pub name: Cow<'a, str>,
    #[serde(borrow)]
    pub arguments: Option<&'a RawValue>,
    #[serde(borrow, rename = "_meta")]
    pub meta: Meta<'a>,
}

/// The protocol version and the capabilities of the client.
#[derive(Deserialize)]
pub struct Meta<'a> {
    #[serde(borrow, rename = "io.modelcontextprotocol/protocolVersion")]
    pub protocol_version: Cow<'a, str>,
    #[serde(borrow, rename = "io.modelcontextprotocol/clientCapabilities")]
    pub client_capabilities: Capabilities<'a>,
}

/// The part of the client's capabilities that decides whether a call may become a task.
#[derive(Deserialize)]
pub struct Capabilities<'a> {
    #[serde(borrow, default)]
    pub extensions: Extensions<'a>,
}

/// The extensions that the client declared.
#[derive(Deserialize, Default)]
pub struct Extensions<'a> {
    #[serde(borrow, rename = "io.modelcontextprotocol/tasks")]
    pub tasks: Option<&'a RawValue>,
}

/// Arguments of `echo`.
#[derive(Deserialize)]
pub struct Echo<'a> {
    #[serde(borrow)]
    pub text: Cow<'a, str>,
    /// The steps to record before the end.
    #[serde(default)]
    pub steps: u32,
}

impl<'a> Envelope<'a> {
    /// Parses a body. `None` unless it is a request of this protocol version by a client that supports tasks.
    pub fn parse(body: &'a [u8]) -> Option<Self> {
        let envelope: Self = serde_json::from_slice(body).ok()?;
        let meta = &envelope.params.meta;
        (envelope.jsonrpc == "2.0"
            && meta.protocol_version == "2026-07-28"
            && meta.client_capabilities.extensions.tasks.is_some())
        .then_some(envelope)
    }
}
