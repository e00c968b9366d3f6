//! Answers to questions, as stateless requests bring them: `tasks/update`, and `tools/call` in a further round.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::jsonrpc::RpcError;
use crate::text;

/// The client's answers by question, in the order they were sent. No value is checked before its question is known:
/// answers to unknown questions are ignored unread.
#[derive(Debug, Default)]
pub struct InputResponses<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> InputResponses<'a> {
    pub(crate) fn parse(raw: &'a RawValue) -> Result<Self, RpcError> {
        match serde_json::from_str::<text::ObjectMembers<'a>>(raw.get()) {
            Ok(members) => Ok(Self(members.0)),
            Err(_) => Err(RpcError::invalid_params(format!(
                "`inputResponses` must be an object with at most {} members, one for each question",
                text::ObjectMembers::MEMBERS_MAX
            ))),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.0.iter().map(|(key, value)| (key.as_ref(), *value))
    }

    /// The answer to one question; the first one, if there are several.
    pub fn get(&self, key: &str) -> Option<&'a RawValue> {
        self.iter().find(|(name, _)| *name == key).map(|(_, value)| value)
    }
}
