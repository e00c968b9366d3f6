//! `subscriptions/listen`: a stream of what the client asked to hear of.
//!
//! The subscription is called by the ID of the request that opened it, and every message on it carries that ID.

use longhaul_task::TaskId;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Capabilities, Capability, Params, ServerInfo, task};
use crate::View;
use crate::jsonrpc::{self, RequestId, RpcError};
use crate::text;

/// How many tasks one subscription may follow.
pub const TASK_IDS_MAX: usize = 1_000;

/// What a client wants to hear of; the other way round, what it will.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// The changes of these tasks; none when tasks were not mentioned at all. What cannot be an ID is left out, like
    /// the IDs of other people's tasks.
    pub task_ids: Option<Vec<TaskId>>,
    /// When the list of tools changes.
    pub tools_list_changed: bool,
}

impl Filter {
    /// Reads the filter. Kinds that are not served here are left out, which the acknowledgement then shows.
    pub fn parse(params: &Params<'_>, capabilities: Capabilities) -> Result<Self, RpcError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Members<'a> {
            #[serde(borrow, default)]
            task_ids: Option<&'a RawValue>,
            #[serde(default)]
            tools_list_changed: Option<bool>,
        }
        let wrong = |why: &str| RpcError::invalid_params(format!("`notifications` is not valid: {why}"));
        let raw = params.notifications.ok_or_else(|| wrong("it is missing"))?;
        if !text::is_object(raw) {
            return Err(wrong("it must be an object"));
        }
        let members: Members<'_> = serde_json::from_str(raw.get()).map_err(|error| wrong(&error.to_string()))?;
        let task_ids = match members.task_ids {
            None => None,
            Some(raw) => {
                capabilities.require(Capability::Tasks)?;
                let ids: Vec<text::Text<'_>> =
                    serde_json::from_str(raw.get()).map_err(|_| wrong("`taskIds` must be an array of strings"))?;
                if ids.len() > TASK_IDS_MAX {
                    return Err(wrong(&format!("`taskIds` has more than {TASK_IDS_MAX} entries")));
                }
                Some(ids.iter().filter_map(|id| TaskId::parse(&id.0).ok()).collect())
            }
        };
        Ok(Self { task_ids, tools_list_changed: members.tools_list_changed.unwrap_or(false) })
    }
}

/// The first message of the stream: what of the filter is honoured.
pub fn acknowledged(id: &RequestId, honoured: &Filter) -> String {
    jsonrpc::notification("notifications/subscriptions/acknowledged", 256, |out| {
        write_subscription(out, id);
        out.push_str(",\"notifications\":{");
        if honoured.tools_list_changed {
            out.push_str("\"toolsListChanged\":true");
        }
        if let Some(ids) = &honoured.task_ids {
            if honoured.tools_list_changed {
                out.push(',');
            }
            out.push_str("\"taskIds\":[");
            for (place, id) in ids.iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                text::push_str(out, id.as_str());
            }
            out.push(']');
        }
        out.push_str("}}");
    })
}

/// A task has changed: all of it, as `tasks/get` would have shown it.
pub fn task_changed(id: &RequestId, view: &View<'_>) -> String {
    jsonrpc::notification("notifications/tasks", 128 + task::room(view), |out| {
        write_subscription(out, id);
        out.push(',');
        task::write_detailed(out, view);
        out.push('}');
    })
}

/// The list of tools has changed.
pub fn tools_list_changed(id: &RequestId) -> String {
    jsonrpc::notification("notifications/tools/list_changed", 128, |out| {
        write_subscription(out, id);
        out.push('}');
    })
}

/// The last message of the stream, when the server ends it on purpose.
pub fn closed(id: &RequestId, server: &ServerInfo) -> String {
    jsonrpc::response(id, server.room() + 64, |out| {
        out.push_str("{\"resultType\":\"complete\",\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":");
        out.push_str(id.as_json());
        if !server.member().is_empty() {
            out.push(',');
            out.push_str(server.member());
        }
        out.push_str("}}");
    })
}

/// Appends the beginning of the parameters, up to and with the subscription's name.
fn write_subscription(out: &mut String, id: &RequestId) {
    out.push_str("{\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":");
    out.push_str(id.as_json());
    out.push('}');
}
