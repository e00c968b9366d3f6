//! `subscriptions/listen`: a stream of the notifications that the client asked for, in the stateless era.
//!
//! The ID of the request that opened the stream is the ID of the subscription, and every message on it carries that ID.

use longhaul_task::TaskId;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::jsonrpc::{self, RequestId, RpcError};
use crate::{Capabilities, Capability, ReplyTo, text};

/// Tasks in one subscription.
pub const TASK_IDS_MAX: usize = 1_000;

/// The notifications that a client asks for; in the acknowledgement, those that it will get.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubscriptionFilter {
    /// `None` when the request does not mention tasks. Text that cannot be an ID is left out, like the IDs of other
    /// owners' tasks.
    pub task_ids: Option<Vec<TaskId>>,
    pub tools_list_changed: bool,
}

impl SubscriptionFilter {
    /// Reads the filter. Unknown kinds of notifications are left out, which the acknowledgement then shows.
    pub(crate) fn parse(notifications: Option<&RawValue>, capabilities: Capabilities) -> Result<Self, RpcError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct FilterMembers<'a> {
            #[serde(borrow, default)]
            task_ids: Option<&'a RawValue>,
            #[serde(default)]
            tools_list_changed: Option<bool>,
        }
        let wrong = |why: &str| RpcError::invalid_params(format!("`notifications` is not valid: {why}"));
        let raw = notifications.ok_or_else(|| wrong("it is missing"))?;
        if !text::is_object(raw) {
            return Err(wrong("it must be an object"));
        }
        let members: FilterMembers<'_> = serde_json::from_str(raw.get()).map_err(|error| wrong(&error.to_string()))?;
        let task_ids = match members.task_ids {
            None => None,
            Some(raw) => {
                capabilities.require(Capability::Tasks)?;
                let ids: Vec<text::JsonString<'_>> =
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

/// The first message of the stream: the part of the filter that is honoured.
pub fn acknowledged(id: &RequestId, honoured: &SubscriptionFilter) -> String {
    jsonrpc::notification("notifications/subscriptions/acknowledged", 256, |out| {
        out.push('{');
        write_id(out, id);
        out.push_str(",\"notifications\":{");
        if honoured.tools_list_changed {
            out.push_str("\"toolsListChanged\":true");
        }
        if let Some(ids) = &honoured.task_ids {
            if honoured.tools_list_changed {
                out.push(',');
            }
            out.push_str("\"taskIds\":[");
            for (index, id) in ids.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                text::push_str(out, id.as_str());
            }
            out.push(']');
        }
        out.push_str("}}");
    })
}

/// The last message of the stream, when the server ends it on purpose.
pub fn closed(to: &ReplyTo<'_>) -> String {
    jsonrpc::response(to.id, to.server.room() + 64, |out| {
        out.push_str("{\"resultType\":\"complete\",\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":");
        out.push_str(to.id.as_json());
        if !to.server.member().is_empty() {
            out.push(',');
            out.push_str(to.server.member());
        }
        out.push_str("}}");
    })
}

/// Appends the `_meta` member of a notification's parameters, which names the subscription.
pub(crate) fn write_id(out: &mut String, id: &RequestId) {
    out.push_str("\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":");
    out.push_str(id.as_json());
    out.push('}');
}
