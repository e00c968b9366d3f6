//! Parameters of requests: found by the pass that reads the message, read one by one by the operation that needs them.

use std::borrow::Cow;

use longhaul_task::TaskId;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::jsonrpc::{RpcError, describe_read_error};
use crate::refusal;
use crate::text::{self, ObjectMembers};

/// The parameters of a message.
#[derive(Debug)]
pub struct Params<'a> {
    message: &'a str,
    found: Result<RequestParams<'a>, String>,
}

impl<'a> Params<'a> {
    pub(crate) fn new(message: &'a str, found: Result<RequestParams<'a>, String>) -> Self {
        Self { message, found }
    }

    /// The object as text, if the message has parameters. This reads the message again: it is meant for the messages
    /// whose parameters have other names than those of operations.
    pub fn raw(&self) -> Option<&'a RawValue> {
        #[derive(Deserialize)]
        struct ParamsMember<'a> {
            #[serde(borrow)]
            params: Option<&'a RawValue>,
        }
        serde_json::from_str::<ParamsMember<'a>>(self.message).ok()?.params
    }

    /// The parameters of a stateless request. Unreadable ones make the whole request malformed: HTTP status 400.
    pub(crate) fn of_stateless(&self) -> Result<&RequestParams<'a>, RpcError> {
        self.found.as_ref().map_err(|error| RpcError::malformed_params(error.clone()))
    }

    /// The parameters of a request in a session. Published clients send `null` for a parameter that they leave out, so
    /// `null` counts as absent there.
    pub(crate) fn of_session(&self) -> Result<RequestParams<'a>, RpcError> {
        let mut params = self.found.clone().map_err(RpcError::invalid_params)?;
        let RequestParams { name, arguments, uri, task, task_id, level, context, .. } = &mut params;
        for param in [name, arguments, uri, task, task_id, level, context] {
            param.take_if(|value| value.get() == "null");
        }
        Ok(params)
    }
}

/// Every parameter that some operation reads, not read yet. All other parameters are ignored.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RequestParams<'a> {
    #[serde(rename = "_meta", borrow, default, deserialize_with = "meta")]
    pub(crate) meta: Option<ObjectMembers<'a>>,
    /// Of `tools/call` and `prompts/get`.
    #[serde(borrow, default, deserialize_with = "text::present")]
    pub(crate) name: Option<&'a RawValue>,
    /// Of `tools/call` and `prompts/get`.
    #[serde(borrow, default, deserialize_with = "text::present")]
    pub(crate) arguments: Option<&'a RawValue>,
    /// Of `resources/read`, `resources/subscribe` and `resources/unsubscribe`.
    #[serde(borrow, default, deserialize_with = "text::present")]
    pub(crate) uri: Option<&'a RawValue>,
    /// Of `tools/call`, `prompts/get`, `resources/read` and `tasks/update`.
    #[serde(borrow, default, deserialize_with = "text::present")]
    pub(crate) input_responses: Option<&'a RawValue>,
    /// Of `tools/call`, `prompts/get` and `resources/read`.
    #[serde(borrow, default, deserialize_with = "text::present")]
    pub(crate) request_state: Option<&'a RawValue>,
    /// Of `tools/call`, in a session.
    #[serde(borrow, default, deserialize_with = "text::present")]
    pub(crate) task: Option<&'a RawValue>,
    /// Of `tasks/*`.
    #[serde(borrow, default, deserialize_with = "text::present")]
    pub(crate) task_id: Option<&'a RawValue>,
    /// Of every list.
    #[serde(borrow, default, deserialize_with = "text::present")]
    pub(crate) cursor: Option<&'a RawValue>,
    /// Of `subscriptions/listen`.
    #[serde(borrow, default, deserialize_with = "text::present")]
    pub(crate) notifications: Option<&'a RawValue>,
    /// Of `logging/setLevel`.
    #[serde(borrow, default, deserialize_with = "text::present")]
    pub(crate) level: Option<&'a RawValue>,
    /// Of `completion/complete`.
    #[serde(rename = "ref", borrow, default, deserialize_with = "text::present")]
    pub(crate) reference: Option<&'a RawValue>,
    /// Of `completion/complete`.
    #[serde(borrow, default, deserialize_with = "text::present")]
    pub(crate) argument: Option<&'a RawValue>,
    /// Of `completion/complete`.
    #[serde(borrow, default, deserialize_with = "text::present")]
    pub(crate) context: Option<&'a RawValue>,
}

impl<'a> RequestParams<'a> {
    pub(crate) fn find(params: Option<&'a RawValue>) -> Result<Self, String> {
        match params {
            None => Ok(Self::default()),
            Some(raw) => serde_json::from_str(raw.get())
                .map_err(|error| format!("`params` cannot be read: {}", describe_read_error(&error))),
        }
    }

    pub(crate) fn required_task_id(&self) -> Result<TaskId, RpcError> {
        let text = required_string("taskId", self.task_id)?;
        // Text that cannot be an ID gets the answer of an unknown ID.
        TaskId::parse(&text).map_err(|_| refusal::no_such_task())
    }

    pub(crate) fn cursor(&self) -> Result<Option<Cow<'a, str>>, RpcError> {
        // Published clients send `null` for no cursor.
        optional_string("cursor", self.cursor.filter(|cursor| cursor.get() != "null"))
    }

    pub(crate) fn required_uri(&self) -> Result<Cow<'a, str>, RpcError> {
        required_string("uri", self.uri)
    }

    /// The arguments of a call or a prompt: an object, `{}` when none were sent.
    pub(crate) fn arguments(&self) -> Result<&'a RawValue, RpcError> {
        let arguments = self.arguments.unwrap_or_else(|| text::empty_object());
        if text::is_object(arguments) {
            Ok(arguments)
        } else {
            Err(RpcError::invalid_params("`arguments` must be an object"))
        }
    }
}

/// `null` counts as absent.
fn meta<'de, D: Deserializer<'de>>(from: D) -> Result<Option<ObjectMembers<'de>>, D::Error> {
    let rule = || format!("`_meta` must be an object of at most {} members", ObjectMembers::MEMBERS_MAX);
    Option::deserialize(from).map_err(|_| D::Error::custom(rule()))
}

pub(crate) fn required_string<'a>(name: &str, value: Option<&'a RawValue>) -> Result<Cow<'a, str>, RpcError> {
    optional_string(name, value)?.ok_or_else(|| RpcError::invalid_params(format!("`{name}` is missing")))
}

pub(crate) fn optional_string<'a>(name: &str, value: Option<&'a RawValue>) -> Result<Option<Cow<'a, str>>, RpcError> {
    match value {
        None => Ok(None),
        Some(value) => match text::string(value) {
            Some(text) => Ok(Some(text)),
            None => Err(RpcError::invalid_params(format!("`{name}` must be a string"))),
        },
    }
}
