use longhaul_task::{Json, QuestionKind};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::jsonrpc::RpcError;
use crate::{question, text};

/// The name of the tasks extension in capabilities.
pub(crate) const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// Something that a client can declare to be able to do.
///
/// The order is stored: sessions carry a [`Capabilities`] in their token. New ones go to the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Capability {
    /// Take a task instead of a result, by the extension.
    Tasks,
    /// Follow tasks of the generation before the extension.
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
    /// Give its model context from servers.
    SamplingContext,
    /// Run what it asks its model as a task of its own.
    SamplingTasks,
    /// Run what it asks its user as a task of its own.
    ElicitationTasks,
    /// Cancel its own tasks when it is asked to.
    CancelTasks,
    /// List its own tasks.
    ListTasks,
}

impl Capability {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Tasks,
        Self::LegacyTasks,
        Self::ElicitationForm,
        Self::ElicitationUrl,
        Self::Sampling,
        Self::SamplingTools,
        Self::Roots,
        Self::SamplingContext,
        Self::SamplingTasks,
        Self::ElicitationTasks,
        Self::CancelTasks,
        Self::ListTasks,
    ];

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
            Self::SamplingContext => r#"{"sampling":{"context":{}}}"#,
            Self::SamplingTasks => r#"{"tasks":{"requests":{"sampling":{"createMessage":{}}}}}"#,
            Self::ElicitationTasks => r#"{"tasks":{"requests":{"elicitation":{"create":{}}}}}"#,
            Self::CancelTasks => r#"{"tasks":{"cancel":{}}}"#,
            Self::ListTasks => r#"{"tasks":{"list":{}}}"#,
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

    /// What a client must be able to do to answer such a question by way of a task; nothing makes roots one.
    pub const fn to_run_as_task(kind: QuestionKind) -> Option<Self> {
        match kind {
            QuestionKind::Elicitation => Some(Self::ElicitationTasks),
            QuestionKind::Sampling => Some(Self::SamplingTasks),
            QuestionKind::Roots => None,
        }
    }

    /// The refusal for its lack.
    pub fn missing(self) -> RpcError {
        RpcError::missing_capability(self.declaration())
    }
}

/// What a client declared: with each request in the stateless era, once per session in the stateful one. Two bytes,
/// so that a session's token stays short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Capabilities(u16);

impl Capabilities {
    /// Whether it was declared.
    pub const fn has(self, capability: Capability) -> bool {
        self.0 & (1 << capability as u16) != 0
    }

    /// The same and this one.
    pub const fn and(self, capability: Capability) -> Self {
        Self(self.0 | (1 << capability as u16))
    }

    /// The same without this one.
    pub const fn without(self, capability: Capability) -> Self {
        Self(self.0 & !(1 << capability as u16))
    }

    /// Refuses a request that needs what was not declared.
    pub fn require(self, capability: Capability) -> Result<(), RpcError> {
        if self.has(capability) { Ok(()) } else { Err(capability.missing()) }
    }

    /// Whether such a question can be put to this client.
    pub fn can_answer(self, kind: QuestionKind, params: &Json) -> bool {
        self.has(Capability::to_answer(kind, params))
    }

    /// For a token or a row.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// What [`bits`](Self::bits) gave.
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }

    fn and_if(self, declared: bool, capability: Capability) -> Self {
        if declared { self.and(capability) } else { self }
    }

    /// Reads a capabilities object. What is not an object in it declares nothing; what is unknown is ignored.
    pub(crate) fn parse(raw: &RawValue) -> Option<Self> {
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
        let by_url = has(declared.elicitation, &["url"]);
        // An elicitation that names no mode means forms, as it did before there were modes.
        let by_form = has(declared.elicitation, &[]) && (!by_url || has(declared.elicitation, &["form"]));
        let all = Self::default()
            .and_if(has(declared.extensions, &[EXTENSION]), Capability::Tasks)
            .and_if(has(declared.tasks, &[]), Capability::LegacyTasks)
            .and_if(by_form, Capability::ElicitationForm)
            .and_if(by_url, Capability::ElicitationUrl)
            .and_if(has(declared.sampling, &[]), Capability::Sampling)
            .and_if(has(declared.sampling, &["tools"]), Capability::SamplingTools)
            .and_if(has(declared.sampling, &["context"]), Capability::SamplingContext)
            .and_if(has(declared.roots, &[]), Capability::Roots)
            .and_if(has(declared.tasks, &["requests", "sampling", "createMessage"]), Capability::SamplingTasks)
            .and_if(has(declared.tasks, &["requests", "elicitation", "create"]), Capability::ElicitationTasks)
            .and_if(has(declared.tasks, &["cancel"]), Capability::CancelTasks)
            .and_if(has(declared.tasks, &["list"]), Capability::ListTasks);
        Some(all)
    }
}

/// Whether an object is there, `path` further down in it.
fn has(outer: Option<&RawValue>, path: &[&str]) -> bool {
    let found = outer.and_then(|outer| path.iter().try_fold(outer, |object, name| text::member(object, name)));
    found.is_some_and(text::is_object)
}
