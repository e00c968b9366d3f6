use std::borrow::Cow;

use longhaul_task::{Json, Question, QuestionKind};
use serde_json::value::RawValue;

use crate::jsonrpc::RpcError;
use crate::{question, text};

/// What a client answered, by question, in the order it was sent. No value is judged before its question is known:
/// answers to questions that nobody asked are ignored, whatever they are.
#[derive(Debug, Default)]
pub struct InputResponses<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> InputResponses<'a> {
    /// How many answers one request may bring.
    pub const MAX: usize = text::Members::MAX;

    pub(super) fn parse(raw: &'a RawValue) -> Result<Self, RpcError> {
        match serde_json::from_str::<text::Members<'a>>(raw.get()) {
            Ok(members) => Ok(Self(members.0)),
            Err(error) => Err(RpcError::invalid_params(format!("`inputResponses` cannot be read: {error}"))),
        }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.0.iter().map(|(key, value)| (key.as_ref(), *value))
    }

    /// The answer to one question; the first, if there are several.
    pub fn get(&self, key: &str) -> Option<&'a RawValue> {
        self.iter().find(|(name, _)| *name == key).map(|(_, value)| value)
    }
}

/// Whether an answer fits its question, as the refusal of the request that brought it.
pub(super) fn check(question: &Question, answer: &RawValue) -> Result<(), RpcError> {
    question::check(question, answer).map_err(|wrong| RpcError::invalid_params(wrong.to_string()))
}

/// Appends `,"inputRequests":{…}`.
pub(super) fn write<'q>(out: &mut String, questions: impl Iterator<Item = (&'q str, QuestionKind, &'q Json)>) {
    out.push_str(",\"inputRequests\":{");
    for (place, (key, kind, params)) in questions.enumerate() {
        if place > 0 {
            out.push(',');
        }
        text::push_str(out, key);
        out.push_str(":{\"method\":\"");
        out.push_str(question::method(kind));
        out.push_str("\",\"params\":");
        out.push_str(params.as_str());
        out.push('}');
    }
    out.push('}');
}
