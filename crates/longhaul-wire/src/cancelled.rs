use serde::Deserialize;
use serde_json::value::RawValue;

use crate::jsonrpc::{self, RequestId};
use crate::text;

/// `notifications/cancelled`: one side gives up a request of its own that is under way. It never cancels a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cancelled {
    /// Which request.
    pub request_id: RequestId,
    /// Why, for logs and people.
    pub reason: Option<String>,
}

impl Cancelled {
    /// Reads the notification; one that cannot be read is to be ignored.
    pub fn parse(params: Option<&RawValue>) -> Option<Self> {
        #[derive(Deserialize)]
        struct Members<'a> {
            #[serde(rename = "requestId", borrow)]
            request_id: &'a RawValue,
            #[serde(borrow, default)]
            reason: Option<&'a RawValue>,
        }
        let members: Members<'_> = serde_json::from_str(params?.get()).ok()?;
        let reason = members.reason.and_then(text::string);
        Some(Self { request_id: RequestId::parse(members.request_id)?, reason: reason.map(Into::into) })
    }

    /// The notification, for a request of our own.
    pub fn notification(&self) -> String {
        jsonrpc::notification("notifications/cancelled", 64 + self.reason.as_ref().map_or(0, String::len), |out| {
            out.push_str("{\"requestId\":");
            out.push_str(self.request_id.as_json());
            if let Some(reason) = &self.reason {
                text::push_str_member(out, "reason", reason);
            }
            out.push('}');
        })
    }
}
