//! `completion/complete`: suggestions for the arguments of prompts and the variables of resource templates.

use std::borrow::Cow;

use longhaul_task::Json;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::jsonrpc::RpcError;
use crate::params::{RequestParams, required_string};
use crate::text;

/// The most values that one response has.
pub const COMPLETION_VALUES_MAX: usize = 100;

/// What an argument belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompletionTarget<'a> {
    /// A prompt, by its name.
    Prompt(Cow<'a, str>),
    /// A resource template, by its text.
    Template(Cow<'a, str>),
}

/// A request for completions.
#[derive(Debug)]
pub struct Complete<'a> {
    pub target: CompletionTarget<'a>,
    pub argument: Cow<'a, str>,
    /// What the user has typed so far.
    pub value: Cow<'a, str>,
    /// The arguments that are known already: an object of strings.
    pub known_arguments: Option<&'a RawValue>,
}

impl<'a> Complete<'a> {
    pub(crate) fn parse(params: &RequestParams<'a>) -> Result<Self, RpcError> {
        #[derive(Deserialize)]
        struct Members<'a> {
            #[serde(rename = "type", borrow, default)]
            kind: Option<&'a RawValue>,
            #[serde(borrow, default)]
            name: Option<&'a RawValue>,
            #[serde(borrow, default)]
            uri: Option<&'a RawValue>,
            #[serde(borrow, default)]
            value: Option<&'a RawValue>,
        }
        let object = |name: &str, value: Option<&'a RawValue>| -> Result<Members<'a>, RpcError> {
            let value = value.filter(|value| text::is_object(value));
            value
                .and_then(|value| serde_json::from_str(value.get()).ok())
                .ok_or_else(|| RpcError::invalid_params(format!("`{name}` must be an object")))
        };
        let reference = object("ref", params.reference)?;
        let target = match &*required_string("ref.type", reference.kind)? {
            "ref/prompt" => CompletionTarget::Prompt(required_string("ref.name", reference.name)?),
            "ref/resource" => CompletionTarget::Template(required_string("ref.uri", reference.uri)?),
            _ => return Err(RpcError::invalid_params("`ref.type` must be ref/prompt or ref/resource")),
        };
        let argument = object("argument", params.argument)?;
        let known_arguments = params.context.and_then(|context| text::member(context, "arguments"));
        if let Some(known) = known_arguments {
            let mut are_strings = text::is_object(known);
            text::each_member(known, |_, value| are_strings &= text::string(value).is_some());
            if !are_strings {
                return Err(RpcError::invalid_params("`context.arguments` must be an object of strings"));
            }
        }
        Ok(Self {
            target,
            argument: required_string("argument.name", argument.name)?,
            value: required_string("argument.value", argument.value)?,
            known_arguments,
        })
    }

    /// The request as the input of the function that completes: `{"argument":…,"value":…,"arguments":{…}}`.
    pub fn to_input(&self) -> Json {
        let mut out = String::from("{\"argument\":");
        text::push_str(&mut out, &self.argument);
        text::push_str_member(&mut out, "value", &self.value);
        text::push_raw_member(&mut out, "arguments", self.known_arguments.map_or("{}", RawValue::get));
        out.push('}');
        Json::from_text(out)
    }
}

/// The result of a completion, as it is stored: at most [`COMPLETION_VALUES_MAX`] of the values.
///
/// ```
/// use longhaul_wire::completion::result;
///
/// let values = ["paris".to_owned(), "park".to_owned()];
/// assert_eq!(
///     result(&values).as_str(),
///     r#"{"completion":{"values":["paris","park"],"total":2,"hasMore":false}}"#
/// );
/// ```
pub fn result(values: &[String]) -> Json {
    let sent = &values[..values.len().min(COMPLETION_VALUES_MAX)];
    let mut out = String::from("{\"completion\":{\"values\":");
    text::push_array(&mut out, sent, |out, value| text::push_str(out, value));
    text::push_number_member(&mut out, "total", values.len() as u64);
    text::push_raw_member(&mut out, "hasMore", if sent.len() < values.len() { "true" } else { "false" });
    out.push_str("}}");
    Json::from_text(out)
}
