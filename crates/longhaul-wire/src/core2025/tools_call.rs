//! `tools/call`: the one request that may become a task.

use std::borrow::Cow;

use longhaul_task::Json;
use serde_json::value::RawValue;

use super::params::Params;
use super::{Marker, Revision, result, task};
use crate::jsonrpc::{self, RequestId, RpcError};
use crate::params::{self, required_string};
use crate::tool::{TaskSupport, ToolDeclaration};
use crate::{View, project, refusal, text};

/// The key of a sentence for the model, to go on with while the task runs.
pub const IMMEDIATE_RESPONSE: &str = "io.modelcontextprotocol/model-immediate-response";

/// A call.
#[derive(Debug)]
pub struct Call<'a> {
    /// Of which tool.
    pub name: Cow<'a, str>,
    /// With what: an object, `{}` when nothing was sent.
    pub arguments: &'a RawValue,
    /// Whether and how it asks for a task.
    pub marker: Marker,
}

impl<'a> Call<'a> {
    pub(super) fn parse(params: &Params<'a>, revision: Revision) -> Result<Self, RpcError> {
        Ok(Self {
            name: required_string("name", params.name)?,
            arguments: params::arguments(params.arguments)?,
            marker: Marker::of(params, revision)?,
        })
    }

    /// Whether the call becomes a task, or why neither is possible. A client of a revision without tasks cannot know
    /// that a tool requires one, so it is not refused for that.
    pub fn becomes_a_task(&self, tool: &ToolDeclaration, revision: Revision) -> Result<bool, RpcError> {
        match (self.marker.asks_for_a_task(), tool.task_support()) {
            (true, TaskSupport::Forbidden) => Err(refusal::task_forbidden(tool.name())),
            (false, TaskSupport::Required) if revision.has_tasks() => Err(refusal::task_required(tool.name())),
            (asks, _) => Ok(asks),
        }
    }
}

/// The answer with the tool's result.
pub fn complete(id: &RequestId, body: &Json, revision: Revision) -> String {
    jsonrpc::response(id, body.bytes(), |out| result::write(out, body.as_str(), revision, None))
}

/// The answer that a task was made. `immediate_response` is the tool's sentence for the model.
pub fn created(id: &RequestId, view: &View<'_>, immediate_response: Option<&str>) -> String {
    jsonrpc::response(id, project::room(view) + 128 + immediate_response.map_or(0, str::len), |out| {
        out.push_str("{\"task\":{");
        task::write_new(out, view);
        out.push('}');
        if let Some(sentence) = immediate_response {
            out.push_str(",\"_meta\":{\"");
            out.push_str(IMMEDIATE_RESPONSE);
            out.push_str("\":");
            text::push_str(out, sentence);
            out.push('}');
        }
        out.push('}');
    })
}
