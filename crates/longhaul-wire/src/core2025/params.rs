use serde::Deserialize;
use serde_json::value::RawValue;

use crate::jsonrpc::RpcError;

/// Every parameter that some request of this era reads, found in one pass and none of them read yet. Clients of this
/// era send `null` for what they leave out, so that counts as left out.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Params<'a> {
    #[serde(rename = "_meta", borrow, default)]
    pub(super) meta: Option<&'a RawValue>,
    /// Of `tools/call`.
    #[serde(borrow, default)]
    pub(super) name: Option<&'a RawValue>,
    /// Of `tools/call`.
    #[serde(borrow, default)]
    pub(super) arguments: Option<&'a RawValue>,
    /// Of requests that may become tasks.
    #[serde(borrow, default)]
    pub(super) task: Option<&'a RawValue>,
    /// Of `tasks/get`, `tasks/result`, `tasks/cancel`.
    #[serde(borrow, default)]
    pub(super) task_id: Option<&'a RawValue>,
    /// Of `tools/list` and `tasks/list`.
    #[serde(borrow, default)]
    pub(super) cursor: Option<&'a RawValue>,
    /// Of `logging/setLevel`.
    #[serde(borrow, default)]
    pub(super) level: Option<&'a RawValue>,
    /// Of `initialize`.
    #[serde(borrow, default)]
    pub(super) protocol_version: Option<&'a RawValue>,
    /// Of `initialize`.
    #[serde(borrow, default)]
    pub(super) capabilities: Option<&'a RawValue>,
    /// Of `initialize`.
    #[serde(borrow, default)]
    pub(super) client_info: Option<&'a RawValue>,
}

impl<'a> Params<'a> {
    /// Finds the parameters of a request.
    pub(super) fn parse(params: Option<&'a RawValue>) -> Result<Self, RpcError> {
        match params {
            None => Ok(Self::default()),
            Some(raw) => serde_json::from_str(raw.get())
                .map_err(|error| RpcError::invalid_params(format!("`params` cannot be read: {error}"))),
        }
    }
}
