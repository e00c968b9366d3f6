//! `notifications/cancelled`, in both directions.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::jsonrpc::{self, RequestId};
use crate::text;

/// `notifications/cancelled`: the sender of a request no longer needs its answer. A task that the request created is
/// cancelled only if the request was still to be answered with the result of the task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CancelledRequest {
    pub request_id: RequestId,
    /// For logs and people.
    pub reason: Option<String>,
}

impl CancelledRequest {
    /// `None` if the notification cannot be read; the protocol wants it ignored then.
    pub fn parse(params: Option<&RawValue>) -> Option<Self> {
        #[derive(Deserialize)]
        struct CancelledParams<'a> {
            #[serde(rename = "requestId", borrow)]
            request_id: &'a RawValue,
            #[serde(borrow, default)]
            reason: Option<&'a RawValue>,
        }
        let members: CancelledParams<'_> = serde_json::from_str(params?.get()).ok()?;
        let reason = members.reason.and_then(text::string);
        Some(Self { request_id: RequestId::parse(members.request_id)?, reason: reason.map(Into::into) })
    }

    /// The notification for a request of the server.
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
