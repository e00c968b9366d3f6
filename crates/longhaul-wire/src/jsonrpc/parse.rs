use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::error::Category;
use serde_json::value::RawValue;

use super::error::describe_read_error;
use super::{ID_BYTES_MAX, RequestId, RpcError};
use crate::params::{Params, RequestParams};
use crate::text::{self, FromObject};

/// How deep a message may nest. Readers commonly stop at 128; what we build around a caller's value must still pass.
pub const DEPTH_MAX: usize = 100;

/// One message, borrowed from the bytes it came in.
#[derive(Debug)]
pub enum Message<'a> {
    Request(Request<'a>),
    Notification(Notification<'a>),
    Response(Response<'a>),
}

/// A message that wants an answer.
#[derive(Debug)]
pub struct Request<'a> {
    pub id: RequestId,
    pub method: Cow<'a, str>,
    pub params: Params<'a>,
}

/// A message that wants no answer.
#[derive(Debug)]
pub struct Notification<'a> {
    pub method: Cow<'a, str>,
    pub params: Params<'a>,
}

/// The answer to a request of the server.
#[derive(Debug)]
pub struct Response<'a> {
    /// An error may have no ID, if the client could not read the ID of the request.
    pub id: Option<RequestId>,
    /// The result, an object, or the error.
    pub outcome: Result<&'a RawValue, RpcError>,
}

/// The refusal of bytes that are not a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct InvalidMessage {
    /// The ID of the request, where it could be read.
    pub id: Option<RequestId>,
    pub error: RpcError,
}

/// Every member that a message may have, not checked yet, so that the ID is known when a check fails.
#[derive(Deserialize)]
#[serde(bound(deserialize = "P: Deserialize<'de>"))]
struct Envelope<'a, P> {
    #[serde(borrow, default, deserialize_with = "text::present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "text::present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "text::present")]
    method: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "text::present")]
    params: Option<P>,
    #[serde(borrow, default, deserialize_with = "text::present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "text::present")]
    error: Option<&'a RawValue>,
}

/// Reads one message.
pub fn parse(bytes: &[u8]) -> Result<Message<'_>, InvalidMessage> {
    let without_id = |error| InvalidMessage { id: None, error };
    let json = std::str::from_utf8(bytes).map_err(|_| without_id(RpcError::parse("the message is not UTF-8")))?;
    if json.trim_start().starts_with('[') {
        // A derived reader would take an array for a struct without names.
        return Err(without_id(match serde_json::from_str::<IgnoredAny>(json) {
            Ok(_) => RpcError::invalid_request("batches are not supported; send one message at a time"),
            Err(error) => RpcError::not_json(&error),
        }));
    }
    // One pass finds everything that most messages need, and a second one what is wrong with the others.
    if let Ok(mut envelope) = serde_json::from_str::<Envelope<'_, FromObject<RequestParams<'_>>>>(json) {
        let params = envelope.params.take().map(|FromObject(params)| params).unwrap_or_default();
        return envelope.judge(json, Ok(Params::new(json, Ok(params))));
    }
    let is_object = json.trim_start().starts_with('{');
    let envelope: Envelope<'_, &RawValue> = serde_json::from_str(json).map_err(|error| {
        without_id(match error.classify() {
            // The same member twice; or no object at all, for which the reader's own message is unclear.
            Category::Data if is_object => RpcError::invalid_request(&describe_read_error(&error)),
            Category::Data => RpcError::invalid_request("a message is a JSON object"),
            Category::Syntax | Category::Eof | Category::Io => RpcError::not_json(&error),
        })
    })?;
    let params = match envelope.params {
        Some(params) if !text::is_object(params) => Err(RpcError::malformed_params("`params` must be an object")),
        params => Ok(Params::new(json, RequestParams::find(params))),
    };
    envelope.judge(json, params)
}

impl<'a, P> Envelope<'a, P> {
    fn judge(self, json: &str, params: Result<Params<'a>, RpcError>) -> Result<Message<'a>, InvalidMessage> {
        let id = self.id.and_then(RequestId::parse);
        // The ID of a response was chosen by the server. In an error, the client would take it for one of its own requests.
        let is_response = self.method.is_none() && (self.result.is_some() || self.error.is_some());
        let error_id = if is_response { None } else { id.clone() };
        self.message(json, id, params).map_err(|error| InvalidMessage { id: error_id, error })
    }

    fn message(
        self,
        json: &str,
        id: Option<RequestId>,
        params: Result<Params<'a>, RpcError>,
    ) -> Result<Message<'a>, RpcError> {
        if text::depth(json, DEPTH_MAX) > DEPTH_MAX {
            return Err(RpcError::invalid_request(&format!("the message nests deeper than {DEPTH_MAX} levels")));
        }
        if self.jsonrpc.and_then(text::string).as_deref() != Some("2.0") {
            return Err(RpcError::invalid_request("`jsonrpc` must be \"2.0\""));
        }
        let Some(method) = self.method else {
            return self.response(id);
        };
        let Some(method) = text::string(method) else {
            return Err(RpcError::invalid_request("`method` must be a string"));
        };
        if self.result.is_some() || self.error.is_some() {
            return Err(RpcError::invalid_request("a message has a `method` or a `result` or an `error`"));
        }
        if self.id.is_some() && id.is_none() {
            return Err(RpcError::invalid_request(&format!(
                "`id` must be a string or an integer of at most {ID_BYTES_MAX} bytes"
            )));
        }
        let params = params?;
        Ok(match id {
            Some(id) => Message::Request(Request { id, method, params }),
            None => Message::Notification(Notification { method, params }),
        })
    }

    fn response(self, id: Option<RequestId>) -> Result<Message<'a>, RpcError> {
        let outcome = match (self.result, self.error) {
            (None, None) => return Err(RpcError::invalid_request("`method` is missing")),
            (Some(_), Some(_)) => {
                return Err(RpcError::invalid_request("a response has a `result` or an `error`, not both"));
            }
            (Some(_), None) if id.is_none() => {
                return Err(RpcError::invalid_request("a result must have the `id` of its request"));
            }
            (Some(result), None) if text::is_object(result) => Ok(result),
            (Some(_), None) => return Err(RpcError::invalid_request("`result` must be an object")),
            (None, Some(error)) => Err(RpcError::read(error)
                .ok_or_else(|| RpcError::invalid_request("`error` must have a `code` and a `message`"))?),
        };
        Ok(Message::Response(Response { id, outcome }))
    }
}
