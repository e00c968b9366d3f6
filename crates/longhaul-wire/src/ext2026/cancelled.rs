use serde::Deserialize;
use serde_json::value::RawValue;

use crate::jsonrpc::RequestId;

/// `notifications/cancelled`: the client gives up a request that is under way. It never cancels a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cancelled {
    /// Which request.
    pub request_id: RequestId,
}

impl Cancelled {
    /// Reads the notification; one that cannot be read is to be ignored.
    pub fn parse(params: Option<&RawValue>) -> Option<Self> {
        #[derive(Deserialize)]
        struct Members<'a> {
            #[serde(rename = "requestId", borrow)]
            request_id: &'a RawValue,
        }
        let members: Members<'_> = serde_json::from_str(params?.get()).ok()?;
        Some(Self { request_id: RequestId::parse(members.request_id)? })
    }
}
