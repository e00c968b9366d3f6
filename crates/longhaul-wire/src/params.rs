//! Reading single parameters, with the refusals that every generation gives.

use std::borrow::Cow;

use longhaul_task::TaskId;
use serde_json::value::RawValue;

use crate::jsonrpc::RpcError;
use crate::{refusal, text};

/// A parameter that must be there and must be a string.
pub(crate) fn required_string<'a>(name: &str, value: Option<&'a RawValue>) -> Result<Cow<'a, str>, RpcError> {
    optional_string(name, value)?.ok_or_else(|| RpcError::invalid_params(format!("`{name}` is missing")))
}

/// A parameter that must be a string if it is there.
pub(crate) fn optional_string<'a>(name: &str, value: Option<&'a RawValue>) -> Result<Option<Cow<'a, str>>, RpcError> {
    match value {
        None => Ok(None),
        Some(value) => match text::string(value) {
            Some(text) => Ok(Some(text)),
            None => Err(RpcError::invalid_params(format!("`{name}` must be a string"))),
        },
    }
}

/// The task that a request is about.
pub(crate) fn required_task_id(value: Option<&RawValue>) -> Result<TaskId, RpcError> {
    let text = required_string("taskId", value)?;
    // What cannot be an ID is nobody's ID: the same answer as for one that nobody has.
    TaskId::parse(&text).map_err(|_| refusal::no_such_task())
}

/// The arguments of a call: an object, `{}` when nothing was sent.
pub(crate) fn arguments(value: Option<&RawValue>) -> Result<&RawValue, RpcError> {
    let arguments = value.unwrap_or_else(|| text::empty_object());
    if text::is_object(arguments) {
        Ok(arguments)
    } else {
        Err(RpcError::invalid_params("`arguments` must be an object"))
    }
}
