use serde::Deserialize;
use serde_json::value::RawValue;

use crate::jsonrpc::RpcError;
use crate::text;

/// Every parameter that some operation of this generation reads, found in one pass and none of them read yet.
/// Whatever else is there is ignored, the older generations' `task` among it.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Params<'a> {
    /// The request's metadata.
    #[serde(rename = "_meta", borrow, default, deserialize_with = "text::present")]
    pub meta: Option<&'a RawValue>,
    /// Of `tools/call`.
    #[serde(borrow, default, deserialize_with = "text::present")]
    pub name: Option<&'a RawValue>,
    /// Of `tools/call`.
    #[serde(borrow, default, deserialize_with = "text::present")]
    pub arguments: Option<&'a RawValue>,
    /// Of `tools/call` and `tasks/update`.
    #[serde(borrow, default, deserialize_with = "text::present")]
    pub input_responses: Option<&'a RawValue>,
    /// Of `tools/call`.
    #[serde(borrow, default, deserialize_with = "text::present")]
    pub request_state: Option<&'a RawValue>,
    /// Of `tasks/*`.
    #[serde(borrow, default, deserialize_with = "text::present")]
    pub task_id: Option<&'a RawValue>,
    /// Of `tools/list`.
    #[serde(borrow, default, deserialize_with = "text::present")]
    pub cursor: Option<&'a RawValue>,
    /// Of `subscriptions/listen`.
    #[serde(borrow, default, deserialize_with = "text::present")]
    pub notifications: Option<&'a RawValue>,
}

impl<'a> Params<'a> {
    /// Finds the parameters of a request.
    pub fn parse(params: Option<&'a RawValue>) -> Result<Self, RpcError> {
        match params {
            None => Ok(Self::default()),
            Some(raw) => serde_json::from_str(raw.get())
                .map_err(|error| RpcError::malformed_params(format!("`params` cannot be read: {error}"))),
        }
    }
}
