//! `tools/call`: the one request that may become a task.

use std::borrow::Cow;

use longhaul_task::{Json, QuestionKind};
use serde_json::value::RawValue;

use super::{InputResponses, Params, ServerInfo, input, task};
use crate::jsonrpc::{self, RequestId, RpcError};
use crate::params::{self, optional_string, required_string};
use crate::{View, splice, text};

pub use crate::refusal::no_such_tool;

/// A call.
#[derive(Debug)]
pub struct Call<'a> {
    /// Of which tool.
    pub name: Cow<'a, str>,
    /// With what: an object, `{}` when nothing was sent.
    pub arguments: &'a RawValue,
    /// The answers to what an earlier round asked.
    pub input_responses: Option<InputResponses<'a>>,
    /// What an earlier round gave the client to keep. Anybody can have made it up.
    pub request_state: Option<Cow<'a, str>>,
}

impl<'a> Call<'a> {
    /// Reads the call. An older generation's `task` is not even looked for.
    pub fn parse(params: &Params<'a>) -> Result<Self, RpcError> {
        Ok(Self {
            name: required_string("name", params.name)?,
            arguments: params::arguments(params.arguments)?,
            input_responses: params.input_responses.map(InputResponses::parse).transpose()?,
            request_state: optional_string("requestState", params.request_state)?,
        })
    }
}

/// The answer with the tool's result.
pub fn complete(id: &RequestId, body: &Json, server: &ServerInfo) -> String {
    jsonrpc::response(id, server.room() + body.bytes(), |out| {
        splice::write_complete(out, body.as_str(), server.member());
    })
}

/// A question that a call asks before it goes on.
#[derive(Debug, Clone)]
pub struct InputRequest {
    /// What its answer is called by.
    pub key: String,
    /// What kind of thing is asked for.
    pub kind: QuestionKind,
    /// The request's parameters.
    pub params: Json,
}

/// The answer that asks the client for more before it calls again. At least one of `requests` and `state` must be
/// there.
pub fn input_required(id: &RequestId, requests: &[InputRequest], state: Option<&str>, server: &ServerInfo) -> String {
    let asked: usize = requests.iter().map(|request| request.key.len() + request.params.bytes() + 64).sum();
    jsonrpc::response(id, server.room() + asked + state.map_or(0, str::len), |out| {
        out.push_str("{\"resultType\":\"input_required\"");
        if !requests.is_empty() {
            input::write(out, requests.iter().map(|asked| (asked.key.as_str(), asked.kind, &asked.params)));
        }
        if let Some(state) = state {
            text::push_str_member(out, "requestState", state);
        }
        server.write_meta(out);
        out.push('}');
    })
}

/// The answer that a task was made. It shows the task as it stands, and nothing of its result yet.
pub fn created(id: &RequestId, view: &View<'_>, server: &ServerInfo) -> String {
    jsonrpc::response(id, server.room() + 384, |out| {
        out.push_str("{\"resultType\":\"task\",");
        task::write_plain(out, view);
        server.write_meta(out);
        out.push('}');
    })
}
