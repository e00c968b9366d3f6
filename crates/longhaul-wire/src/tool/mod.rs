//! The MCP half of a tool's declaration: what clients see of it, and what they may send it.
//!
//! ```
//! use longhaul_task::Json;
//! use longhaul_wire::tool::{TaskSupport, ToolDeclaration};
//!
//! let tool = ToolDeclaration::draft("greet")
//!     .description("Says hello.")
//!     .input_schema(Json::from_text(
//!         r#"{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}"#,
//!     ))
//!     .task_support(TaskSupport::Forbidden)
//!     .declare()
//!     .unwrap();
//!
//! let arguments = serde_json::value::RawValue::from_string(r#"{"name":5}"#.into()).unwrap();
//! let wrong = tool.check_arguments(&arguments).unwrap_err();
//! assert!(wrong.to_string().contains("/name"));
//! ```

mod draft;
mod listed;
mod mirror;

use longhaul_task::Json;
use serde_json::value::RawValue;

pub use draft::{ToolDraft, ToolError, is_tool_name};
pub(crate) use listed::{ListedTool, is_listed, write_tool};
pub(crate) use mirror::{Mirror, MirrorKind};

use crate::content::ToolResult;
use crate::jsonrpc::quote;
use crate::schema::Schema;

/// The longest tool name, in bytes.
pub const TOOL_NAME_BYTES_MAX: usize = 128;

/// Checks whether a tool can read arguments that fit its schema: a type can be stricter than its schema. The error says why
/// the tool cannot.
pub type ArgumentReader = fn(&RawValue) -> Result<(), String>;

/// Whether a tool runs as a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TaskSupport {
    /// Never: the call is answered with its result.
    Forbidden,
    /// When the client can take one.
    #[default]
    Optional,
    /// Always: a client that cannot take one is refused.
    Required,
}

impl TaskSupport {
    /// The protocol's word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Forbidden => "forbidden",
            Self::Optional => "optional",
            Self::Required => "required",
        }
    }
}

/// What clients are told about a tool's behaviour. All of these are hints.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Annotations {
    /// A name for people.
    pub title: Option<String>,
    /// It changes nothing.
    pub read_only: Option<bool>,
    /// What it changes may be lost.
    pub destructive: Option<bool>,
    /// Calling it twice is the same as calling it once.
    pub idempotent: Option<bool>,
    /// It deals with things outside.
    pub open_world: Option<bool>,
}

/// A tool that may be listed and called: its name, schemas and headers were checked when it was declared.
#[derive(Debug)]
pub struct ToolDeclaration {
    name: String,
    task_support: TaskSupport,
    immediate_response: Option<String>,
    listed: ListedTool,
    input: Schema,
    argument_reader: ArgumentReader,
    mirrors: Vec<Mirror>,
}

impl ToolDeclaration {
    /// Begins a declaration.
    pub fn draft(name: impl Into<String>) -> ToolDraft {
        ToolDraft::new(name.into())
    }

    /// What it is called by.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it runs as a task.
    pub fn task_support(&self) -> TaskSupport {
        self.task_support
    }

    /// What the model may be told while the tool runs as a task.
    pub fn immediate_response(&self) -> Option<&str> {
        self.immediate_response.as_deref()
    }

    /// Whether the arguments of a call fit the input schema, have no key twice, and can be read by the tool.
    pub fn check_arguments(&self, arguments: &RawValue) -> Result<(), ArgumentErrors> {
        let mut faults = self.input.faults(arguments);
        if faults.is_empty() {
            faults.extend((self.argument_reader)(arguments).err().map(|why| quote(&why).into_owned()));
        }
        if faults.is_empty() { Ok(()) } else { Err(ArgumentErrors { tool: self.name.clone(), faults }) }
    }

    /// How it is listed.
    pub(crate) fn listed(&self) -> &ListedTool {
        &self.listed
    }

    /// The arguments that clients repeat in HTTP headers.
    pub(crate) fn mirrors(&self) -> &[Mirror] {
        &self.mirrors
    }
}

/// Arguments that a tool does not take. Models correct themselves from this, so it is an ordinary tool
/// result and not an error of the protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("The arguments do not fit the tool `{tool}`: {}", .faults.join("; "))]
pub struct ArgumentErrors {
    tool: String,
    faults: Vec<String>,
}

impl ArgumentErrors {
    /// What is wrong, one sentence each, the place in the arguments first.
    pub fn faults(&self) -> &[String] {
        &self.faults
    }

    /// The tool result that says so.
    pub fn to_result(&self) -> Json {
        ToolResult::error(&self.to_string()).into_json()
    }
}
