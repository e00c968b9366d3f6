//! The result of `prompts/get`.

use longhaul_task::Json;
use serde_json::value::RawValue;

use crate::content::{Content, ToolResult};
use crate::{Revision, text};

/// One message of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptMessage {
    role: &'static str,
    content: Content,
}

impl PromptMessage {
    /// A message of the user.
    pub fn user(content: impl Into<Content>) -> Self {
        Self { role: "user", content: content.into() }
    }

    /// A message of the model.
    pub fn assistant(content: impl Into<Content>) -> Self {
        Self { role: "assistant", content: content.into() }
    }
}

/// The messages that a prompt consists of.
///
/// ```
/// use longhaul_wire::prompt::{PromptMessage, PromptResult};
///
/// let result = PromptResult::new().with(PromptMessage::user("Hello!")).into_json();
/// assert_eq!(result.as_str(), r#"{"messages":[{"role":"user","content":{"type":"text","text":"Hello!"}}]}"#);
/// ```
#[derive(Debug, Clone, Default)]
pub struct PromptResult {
    description: Option<String>,
    messages: Vec<PromptMessage>,
}

impl PromptResult {
    /// A prompt without messages yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a message.
    pub fn with(mut self, message: PromptMessage) -> Self {
        self.messages.push(message);
        self
    }

    /// What the prompt is for, for people.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// The result as it is stored.
    pub fn into_json(self) -> Json {
        let bytes: usize = self.messages.iter().map(|message| message.content.as_json().len() + 64).sum();
        let mut out = String::with_capacity(bytes + 64);
        out.push_str("{\"messages\":");
        text::push_array(&mut out, &self.messages, |out, message| {
            out.push_str("{\"role\":\"");
            out.push_str(message.role);
            out.push_str("\",\"content\":");
            out.push_str(message.content.as_json());
            out.push('}');
        });
        if let Some(description) = &self.description {
            text::push_str_member(&mut out, "description", description);
        }
        out.push('}');
        Json::from_text(out)
    }
}

/// The messages of a stored result as the result of a tool. If a message has another role than `user`, the role of each
/// message precedes it as a block of text.
pub(crate) fn as_tool_result(body: &Json) -> Option<Json> {
    let messages = text::member(text::raw(body.as_str())?, "messages")?;
    let messages: Vec<&RawValue> = serde_json::from_str(messages.get()).ok()?;
    let role = |message| text::member(message, "role").and_then(text::string).unwrap_or_default();
    let names_roles = messages.iter().any(|message| role(message) != "user");
    let mut result = ToolResult::new();
    for message in messages {
        if names_roles {
            result = result.with(Content::text(&format!("{}:", role(message))));
        }
        result = result.with(Content::from_stored(text::member(message, "content")?));
    }
    Some(result.into_json())
}

/// Appends a stored result in the form of a session's revision. Links to resources, which the oldest revision does not
/// have, become text there.
pub(crate) fn write(out: &mut String, body: &str, revision: Revision) {
    if revision.has_structured_content() || !body.contains("\"resource_link\"") {
        out.push_str(body);
        return;
    }
    let Some(result) = text::raw(body) else { return out.push_str(body) };
    out.push('{');
    let start = out.len();
    text::each_member(result, |name, value| {
        if out.len() > start {
            out.push(',');
        }
        text::push_str(out, &name);
        out.push(':');
        let messages = (name == "messages").then(|| serde_json::from_str::<Vec<&RawValue>>(value.get()).ok()).flatten();
        match messages {
            Some(messages) => text::push_array(out, messages, write_message),
            None => out.push_str(value.get()),
        }
    });
    out.push('}');
}

fn write_message(out: &mut String, message: &RawValue) {
    let content = text::member(message, "content");
    let of = |name| content.and_then(|content| text::member(content, name)).and_then(text::string);
    match (of("type").as_deref(), of("uri"), text::member(message, "role")) {
        (Some("resource_link"), Some(uri), Some(role)) => {
            out.push_str("{\"role\":");
            out.push_str(role.get());
            out.push_str(",\"content\":");
            out.push_str(Content::text(&uri).as_json());
            out.push('}');
        }
        _ => out.push_str(message.get()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_as_a_tool_result_has_every_message_with_its_role() {
        let shown = |prompt: PromptResult| as_tool_result(&prompt.into_json()).unwrap();
        let prompt = PromptResult::new().with(PromptMessage::user("Hello!")).description("left out");
        assert_eq!(shown(prompt.clone()), ToolResult::text("Hello!").into_json());
        let expected = ["user:", "Hello!", "assistant:", "Hi."].map(Content::text).into_iter();
        let expected = expected.fold(ToolResult::new(), ToolResult::with).into_json();
        assert_eq!(shown(prompt.with(PromptMessage::assistant("Hi."))), expected);
    }
}
