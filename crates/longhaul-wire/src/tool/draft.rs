use longhaul_task::Json;

use super::{Annotations, ArgumentReader, ListedTool, Mirror, TOOL_NAME_BYTES_MAX, TaskSupport, ToolDeclaration};
use crate::schema::Schema;
use crate::text;

/// Accepts any object.
const ANY_OBJECT: &str = r#"{"type":"object"}"#;

/// A declaration in the making.
#[derive(Debug, Clone)]
pub struct ToolDraft {
    name: String,
    title: Option<String>,
    description: Option<String>,
    input_schema: Json,
    argument_reader: ArgumentReader,
    output_schema: Option<Json>,
    annotations: Annotations,
    task_support: TaskSupport,
    immediate_response: Option<String>,
}

/// Why a tool cannot be declared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// Clients would not take the name, or not everywhere.
    #[error("the tool name {0:?} must have 1 to {TOOL_NAME_BYTES_MAX} letters, digits, `_`, `-` or `.`")]
    Name(String),
    /// The input schema does not compile.
    #[error("the input schema of `{tool}` is not valid: {why}")]
    InputSchema {
        /// The tool.
        tool: String,
        /// What the validator says.
        why: String,
    },
    /// Arguments are always an object, and clients refuse a schema that does not say so.
    #[error("the input schema of `{0}` must have \"type\": \"object\" at its root")]
    InputNotObject(String),
    /// The output schema does not compile.
    #[error("the output schema of `{tool}` is not valid: {why}")]
    OutputSchema {
        /// The tool.
        tool: String,
        /// What the validator says.
        why: String,
    },
    /// An `x-mcp-header` that clients refuse the whole tool for.
    #[error("the header annotation at {at} in the input schema of `{tool}` {why}")]
    Header {
        /// The tool.
        tool: String,
        /// Where in the schema.
        at: String,
        /// What is wrong.
        why: &'static str,
    },
}

impl ToolDraft {
    pub(super) fn new(name: String) -> Self {
        Self {
            name,
            title: None,
            description: None,
            input_schema: Json::from_text(ANY_OBJECT),
            argument_reader: |_| Ok(()),
            output_schema: None,
            annotations: Annotations::default(),
            task_support: TaskSupport::default(),
            immediate_response: None,
        }
    }

    /// A name for people.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// What it does, for models.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// What it takes. Any object, unless this is said.
    pub fn input_schema(mut self, schema: Json) -> Self {
        self.input_schema = schema;
        self
    }

    /// Sets how the tool reads its arguments, which can be stricter than the input schema. A call whose arguments the tool
    /// cannot read is refused before there is a task.
    pub fn argument_reader(mut self, reader: ArgumentReader) -> Self {
        self.argument_reader = reader;
        self
    }

    /// What its `structuredContent` is like.
    pub fn output_schema(mut self, schema: Json) -> Self {
        self.output_schema = Some(schema);
        self
    }

    /// Hints about its behaviour.
    pub fn annotations(mut self, annotations: Annotations) -> Self {
        self.annotations = annotations;
        self
    }

    /// Whether it runs as a task.
    pub fn task_support(mut self, task_support: TaskSupport) -> Self {
        self.task_support = task_support;
        self
    }

    /// A sentence for the model to go on with while the tool runs as a task, where the protocol has a place for it.
    pub fn immediate_response(mut self, sentence: impl Into<String>) -> Self {
        self.immediate_response = Some(sentence.into());
        self
    }

    /// Checks everything that a client might refuse later, one malformed tool being enough to spoil a whole list.
    pub fn declare(self) -> Result<ToolDeclaration, ToolError> {
        let tool = || self.name.clone();
        if !is_tool_name(&self.name) {
            return Err(ToolError::Name(tool()));
        }
        let input = Schema::compile(&self.input_schema).map_err(|why| ToolError::InputSchema { tool: tool(), why })?;
        if input.tree.get("type").and_then(serde_json::Value::as_str) != Some("object") {
            return Err(ToolError::InputNotObject(tool()));
        }
        let mirrors = Mirror::find(&input.tree).map_err(|(at, why)| ToolError::Header { tool: tool(), at, why })?;
        if let Some(output) = &self.output_schema {
            Schema::compile(output).map_err(|why| ToolError::OutputSchema { tool: tool(), why })?;
        }
        let listed = ListedTool {
            title: self.title,
            description: self.description,
            input_schema: text::one_line(self.input_schema.as_str()).into_owned(),
            output_schema: self.output_schema.map(|schema| text::one_line(schema.as_str()).into_owned()),
            annotations: (self.annotations != Annotations::default()).then(|| self.annotations.to_json()),
        };
        Ok(ToolDeclaration {
            name: self.name,
            task_support: self.task_support,
            immediate_response: self.immediate_response,
            listed,
            input,
            argument_reader: self.argument_reader,
            mirrors,
        })
    }
}

impl Annotations {
    fn to_json(&self) -> String {
        let mut members = String::new();
        if let Some(title) = &self.title {
            text::push_str_member(&mut members, "title", title);
        }
        let hints = [
            ("readOnlyHint", self.read_only),
            ("destructiveHint", self.destructive),
            ("idempotentHint", self.idempotent),
            ("openWorldHint", self.open_world),
        ];
        for (name, hint) in hints {
            if let Some(hint) = hint {
                text::push_raw_member(&mut members, name, if hint { "true" } else { "false" });
            }
        }
        format!("{{{}}}", members.trim_start_matches(','))
    }
}

/// Whether a tool can have this name: 1 to [`TOOL_NAME_BYTES_MAX`] characters, each an ASCII letter, a digit, `_`, `-` or `.`.
pub fn is_tool_name(name: &str) -> bool {
    (1..=TOOL_NAME_BYTES_MAX).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
}
