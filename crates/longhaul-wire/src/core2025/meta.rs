use longhaul_task::TaskId;
use serde_json::value::RawValue;

use super::RELATED_TASK;
use crate::jsonrpc::{RequestId, RpcError};
use crate::text;

/// What a request says about itself.
#[derive(Debug, Clone, Default)]
pub struct Meta<'a> {
    /// Under what name it wants to hear of progress: until its answer, or until the end of the task it becomes.
    pub progress_token: Option<RequestId>,
    /// The task it belongs to. For requests with a `taskId` of their own this says nothing.
    pub related_task: Option<TaskId>,
    /// All of it. Generations that share this era are told by their keys in here.
    pub raw: Option<&'a RawValue>,
}

impl<'a> Meta<'a> {
    /// Reads the `_meta` of a request.
    pub(super) fn parse(meta: Option<&'a RawValue>) -> Result<Self, RpcError> {
        let Some(raw) = meta else {
            return Ok(Self::default());
        };
        let wrong = |what: &str| RpcError::invalid_params(format!("`_meta` is not valid: {what}"));
        if !text::is_object(raw) {
            return Err(wrong("it must be an object"));
        }
        let progress_token = match text::member(raw, "progressToken").filter(|token| token.get() != "null") {
            None => None,
            Some(token) => {
                Some(RequestId::parse(token).ok_or_else(|| wrong("`progressToken` must be a string or integer"))?)
            }
        };
        Ok(Self { progress_token, related_task: related_task(raw), raw: Some(raw) })
    }
}

/// The task that a `_meta` object names.
fn related_task(meta: &RawValue) -> Option<TaskId> {
    let related = text::member(meta, RELATED_TASK)?;
    TaskId::parse(&text::string(text::member(related, "taskId")?)?).ok()
}
