//! What a list of tools says about each tool, by revision.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::{TaskSupport, ToolDeclaration};
use crate::{Revision, text};

/// A tool that requires a task is not listed in revisions without tasks, because it could not be called; it can if the
/// client may get a ticket.
pub(crate) fn is_listed(tool: &ToolDeclaration, may_get_tickets: bool, revision: Revision) -> bool {
    let has_tasks = revision.is_stateless() || revision.has_tasks();
    has_tasks || may_get_tickets || tool.task_support() != TaskSupport::Required
}

/// Appends a tool as the list of a revision shows it.
pub(crate) fn write_tool(out: &mut String, tool: &ToolDeclaration, may_get_tickets: bool, revision: Revision) {
    let keeps_output = !may_get_tickets || tool.task_support() == TaskSupport::Forbidden;
    out.push_str("{\"name\":");
    text::push_str(out, tool.name());
    if revision.is_stateless() {
        tool.listed().write(out, keeps_output);
    } else {
        let with_output = keeps_output && revision.has_structured_content();
        tool.listed().write_strict(out, tool.task_support(), revision.has_titles(), with_output);
    }
    if revision.has_tasks() {
        out.push_str(",\"execution\":{\"taskSupport\":\"");
        out.push_str(tool.task_support().as_str());
        out.push_str("\"}");
    }
    out.push('}');
}

/// What lists of tools say about a tool beside its name and its task support, ready to be written.
#[derive(Debug)]
pub(crate) struct ListedTool {
    pub(super) title: Option<String>,
    pub(super) description: Option<String>,
    pub(super) input_schema: String,
    pub(super) output_schema: Option<String>,
    pub(super) annotations: Option<String>,
}

impl ListedTool {
    /// Appends all of it, each member with a comma before it. `with_output` is false for a client that may be handed
    /// a ticket instead of the output.
    pub(crate) fn write(&self, out: &mut String, with_output: bool) {
        self.write_title(out);
        self.write_description(out);
        text::push_raw_member(out, "inputSchema", &self.input_schema);
        self.write_annotations(out);
        if let Some(schema) = self.output_schema.as_ref().filter(|_| with_output) {
            text::push_raw_member(out, "outputSchema", schema);
        }
    }

    /// Appends what clients of the stateful era take. They are stricter about schemas, and one tool that does not fit
    /// costs them the whole list: a property is an object there, and an output has to be one. One generation looks for the
    /// task support among the annotations.
    fn write_strict(&self, out: &mut String, support: TaskSupport, with_title: bool, with_output: bool) {
        if with_title {
            self.write_title(out);
        }
        self.write_description(out);
        text::push_raw_member(out, "inputSchema", &strict(&self.input_schema));
        self.write_annotations_with(out, support);
        if let Some(schema) = self.output_schema.as_ref().filter(|schema| with_output && is_of_objects(schema)) {
            text::push_raw_member(out, "outputSchema", &strict(schema));
        }
    }

    fn write_title(&self, out: &mut String) {
        if let Some(title) = &self.title {
            text::push_str_member(out, "title", title);
        }
    }

    fn write_description(&self, out: &mut String) {
        if let Some(description) = &self.description {
            text::push_str_member(out, "description", description);
        }
    }

    fn write_annotations_with(&self, out: &mut String, support: TaskSupport) {
        let hints = self.annotations.as_deref().and_then(|hints| hints.strip_suffix('}')).unwrap_or("{");
        out.push_str(",\"annotations\":");
        out.push_str(hints);
        out.push_str(if hints == "{" { "\"taskSupport\":\"" } else { ",\"taskSupport\":\"" });
        out.push_str(support.as_str());
        out.push_str("\"}");
    }

    fn write_annotations(&self, out: &mut String) {
        if let Some(annotations) = &self.annotations {
            text::push_raw_member(out, "annotations", annotations);
        }
    }
}

/// Whether a schema says at its root that it is about objects.
fn is_of_objects(schema: &str) -> bool {
    let kind = text::raw(schema).and_then(|schema| text::member(schema, "type"));
    kind.and_then(text::string).as_deref() == Some("object")
}

/// The same schema without `true` and `false` where a property's schema should stand.
fn strict(schema: &str) -> Cow<'_, str> {
    let is_boolean = |value: &RawValue| matches!(value.get(), "true" | "false");
    let Some(root) = text::raw(schema) else {
        return Cow::Borrowed(schema);
    };
    let mut has_boolean = false;
    if let Some(properties) = text::member(root, "properties") {
        text::each_member(properties, |_, value| has_boolean |= is_boolean(value));
    }
    if !has_boolean {
        return Cow::Borrowed(schema);
    }
    let mut out = String::with_capacity(schema.len() + 32);
    write_object(&mut out, root, |out, name, value| {
        if name != "properties" {
            out.push_str(value.get());
            return;
        }
        write_object(out, value, |out, _, value| {
            out.push_str(match value.get() {
                "true" => "{}",
                "false" => "{\"not\":{}}",
                other => other,
            });
        });
    });
    Cow::Owned(out)
}

/// Appends an object whose values `write` appends.
fn write_object(out: &mut String, object: &RawValue, write: impl Fn(&mut String, &str, &RawValue)) {
    out.push('{');
    let start = out.len();
    text::each_member(object, |name, value| {
        if out.len() > start {
            out.push(',');
        }
        text::push_str(out, &name);
        out.push(':');
        write(out, &name, value);
    });
    out.push('}');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_property_without_a_schema_object_gets_one_that_means_the_same() {
        let schema = r#"{"type":"object","properties":{"any \"thing\"":true,"nothing":false,"deep":{"not":true}},"additionalProperties":false}"#;
        assert_eq!(
            strict(schema),
            r#"{"type":"object","properties":{"any \"thing\"":{},"nothing":{"not":{}},"deep":{"not":true}},"additionalProperties":false}"#
        );
        let fine = r#"{"type":"object", "properties":{}}"#;
        assert!(matches!(strict(fine), Cow::Borrowed(same) if same == fine));
    }
}
