use longhaul_task::{Json, QuestionKind};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::EXTENSION;
use crate::jsonrpc::RpcError;
use crate::{question, text};

/// Something that a client can declare to be able to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Capability {
    /// Take a task instead of a result.
    Tasks,
    /// Follow tasks of the generation before this one.
    LegacyTasks,
    /// Put a form before the user.
    ElicitationForm,
    /// Send the user to a URL.
    ElicitationUrl,
    /// Ask its model.
    Sampling,
    /// Ask its model and let it use tools.
    SamplingTools,
    /// Tell the folders it works in.
    Roots,
}

impl Capability {
    /// The capabilities object that declares it.
    const fn declaration(self) -> &'static str {
        match self {
            Self::Tasks => r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#,
            Self::LegacyTasks => r#"{"tasks":{}}"#,
            Self::ElicitationForm => r#"{"elicitation":{"form":{}}}"#,
            Self::ElicitationUrl => r#"{"elicitation":{"url":{}}}"#,
            Self::Sampling => r#"{"sampling":{}}"#,
            Self::SamplingTools => r#"{"sampling":{"tools":{}}}"#,
            Self::Roots => r#"{"roots":{}}"#,
        }
    }

    /// What a client must be able to do to be asked this.
    pub fn to_answer(kind: QuestionKind, params: &Json) -> Self {
        match kind {
            QuestionKind::Elicitation if question::is_by_url(params) => Self::ElicitationUrl,
            QuestionKind::Elicitation => Self::ElicitationForm,
            QuestionKind::Sampling if question::offers_tools(params) => Self::SamplingTools,
            QuestionKind::Sampling => Self::Sampling,
            QuestionKind::Roots => Self::Roots,
        }
    }

    /// The refusal for its lack.
    pub fn missing(self) -> RpcError {
        RpcError::missing_capability(self.declaration())
    }
}

/// What the client of one request declared. Nothing is remembered from one request to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Capabilities(u8);

impl Capabilities {
    /// Whether it was declared.
    pub const fn has(self, capability: Capability) -> bool {
        self.0 & (1 << capability as u8) != 0
    }

    /// The same and this one.
    pub const fn and(self, capability: Capability) -> Self {
        Self(self.0 | (1 << capability as u8))
    }

    /// Refuses a request that needs what was not declared.
    pub fn require(self, capability: Capability) -> Result<(), RpcError> {
        if self.has(capability) { Ok(()) } else { Err(capability.missing()) }
    }

    fn and_if(self, declared: bool, capability: Capability) -> Self {
        if declared { self.and(capability) } else { self }
    }

    /// Reads a capabilities object. What is not an object in it declares nothing; what is unknown is ignored.
    pub(super) fn parse(raw: &RawValue) -> Option<Self> {
        #[derive(Deserialize)]
        struct Declared<'a> {
            #[serde(borrow, default)]
            elicitation: Option<&'a RawValue>,
            #[serde(borrow, default)]
            sampling: Option<&'a RawValue>,
            #[serde(borrow, default)]
            roots: Option<&'a RawValue>,
            #[serde(borrow, default)]
            tasks: Option<&'a RawValue>,
            #[serde(borrow, default)]
            extensions: Option<&'a RawValue>,
        }
        if !text::is_object(raw) {
            return None;
        }
        let declared: Declared<'_> = serde_json::from_str(raw.get()).ok()?;
        let inside = |outer: Option<&RawValue>, name| {
            outer.and_then(|outer| text::member(outer, name)).is_some_and(text::is_object)
        };
        let is_there = |value: Option<&RawValue>| value.is_some_and(text::is_object);
        let by_url = inside(declared.elicitation, "url");
        // An elicitation that names no mode means forms, as it did before there were modes.
        let by_form = is_there(declared.elicitation) && (!by_url || inside(declared.elicitation, "form"));
        let all = Self::default()
            .and_if(inside(declared.extensions, EXTENSION), Capability::Tasks)
            .and_if(is_there(declared.tasks), Capability::LegacyTasks)
            .and_if(by_form, Capability::ElicitationForm)
            .and_if(by_url, Capability::ElicitationUrl)
            .and_if(is_there(declared.sampling), Capability::Sampling)
            .and_if(inside(declared.sampling, "tools"), Capability::SamplingTools)
            .and_if(is_there(declared.roots), Capability::Roots);
        Some(all)
    }
}
