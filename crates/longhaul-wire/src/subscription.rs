//! `subscriptions/listen`: a stream of the notifications that the client asked for, in the stateless era.
//!
//! The ID of the request that opened the stream is the ID of the subscription, and every message on it carries that ID.

use longhaul_task::TaskId;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::jsonrpc::{self, RequestId, RpcError, describe_read_error};
use crate::list::ListKind;
use crate::{Capabilities, Capability, ReplyTo, text};

/// Tasks in one subscription.
pub const TASK_IDS_MAX: usize = 1_000;

/// Resources in one subscription.
pub const RESOURCES_MAX: usize = 1_000;

/// The notifications that a client asks for; in the acknowledgement, those that it will get.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubscriptionFilter {
    /// `None` when the request does not mention tasks. Text that cannot be an ID is left out, like the IDs of other
    /// owners' tasks.
    pub task_ids: Option<Vec<TaskId>>,
    pub tools_list_changed: bool,
    pub prompts_list_changed: bool,
    pub resources_list_changed: bool,
    /// The URIs of resources whose changes are asked for; `None` when the request does not mention them.
    pub resources: Option<Vec<String>>,
}

impl SubscriptionFilter {
    /// Reads the filter. Unknown kinds of notifications are left out, which the acknowledgement then shows.
    pub(crate) fn parse(notifications: Option<&RawValue>, capabilities: Capabilities) -> Result<Self, RpcError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct FilterMembers<'a> {
            #[serde(borrow, default)]
            task_ids: Option<&'a RawValue>,
            #[serde(borrow, default)]
            tools_list_changed: Option<&'a RawValue>,
            #[serde(borrow, default)]
            prompts_list_changed: Option<&'a RawValue>,
            #[serde(borrow, default)]
            resources_list_changed: Option<&'a RawValue>,
            #[serde(borrow, default)]
            resource_subscriptions: Option<&'a RawValue>,
        }
        let wrong = |why: &str| RpcError::invalid_params(format!("`notifications` is not valid: {why}"));
        let raw = notifications.ok_or_else(|| wrong("it is missing"))?;
        if !text::is_object(raw) {
            return Err(wrong("it must be an object"));
        }
        let members: FilterMembers<'_> =
            serde_json::from_str(raw.get()).map_err(|error| wrong(&describe_read_error(&error)))?;
        let strings = |name: &str, raw: &'_ RawValue, entries_max: usize| {
            let strings: Vec<text::JsonString<'_>> =
                serde_json::from_str(raw.get()).map_err(|_| wrong(&format!("`{name}` must be an array of strings")))?;
            if strings.len() > entries_max {
                return Err(wrong(&format!("`{name}` has more than {entries_max} entries")));
            }
            Ok(strings.into_iter().map(|string| string.0.into_owned()).collect::<Vec<_>>())
        };
        let flag = |name: &str, raw: Option<&RawValue>| {
            text::flag(raw).ok_or_else(|| wrong(&format!("`{name}` must be true or false")))
        };
        let task_ids = match members.task_ids {
            None => None,
            Some(raw) => {
                capabilities.require(Capability::Tasks)?;
                let ids = strings("taskIds", raw, TASK_IDS_MAX)?;
                Some(ids.iter().filter_map(|id| TaskId::parse(id).ok()).collect())
            }
        };
        let resources = members.resource_subscriptions;
        let resources = resources.map(|raw| strings("resourceSubscriptions", raw, RESOURCES_MAX)).transpose()?;
        Ok(Self {
            task_ids,
            tools_list_changed: flag("toolsListChanged", members.tools_list_changed)?,
            prompts_list_changed: flag("promptsListChanged", members.prompts_list_changed)?,
            resources_list_changed: flag("resourcesListChanged", members.resources_list_changed)?,
            resources,
        })
    }

    /// Whether changes of a list are among them.
    pub fn has_list(&self, list: ListKind) -> bool {
        match list {
            ListKind::Tools => self.tools_list_changed,
            ListKind::Prompts => self.prompts_list_changed,
            ListKind::Resources => self.resources_list_changed,
        }
    }

    /// Appends the members, with commas between them.
    fn write(&self, out: &mut String) {
        let mut members = String::new();
        let lists = [
            (self.tools_list_changed, "toolsListChanged"),
            (self.prompts_list_changed, "promptsListChanged"),
            (self.resources_list_changed, "resourcesListChanged"),
        ];
        for (_, name) in lists.iter().filter(|(is_wanted, _)| *is_wanted) {
            text::push_raw_member(&mut members, name, "true");
        }
        if let Some(uris) = &self.resources {
            members.push_str(",\"resourceSubscriptions\":");
            text::push_array(&mut members, uris, |out, uri| text::push_str(out, uri));
        }
        if let Some(ids) = &self.task_ids {
            members.push_str(",\"taskIds\":");
            text::push_array(&mut members, ids, |out, id| text::push_str(out, id.as_str()));
        }
        out.push_str(members.trim_start_matches(','));
    }
}

/// The first message of the stream: the part of the filter that is honoured.
pub fn acknowledged(id: &RequestId, honoured: &SubscriptionFilter) -> String {
    jsonrpc::notification("notifications/subscriptions/acknowledged", 256, |out| {
        out.push('{');
        write_id(out, id);
        out.push_str(",\"notifications\":{");
        honoured.write(out);
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
