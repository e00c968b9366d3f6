//! What a client declares that it can do. What the server offers is in `initialize.rs` and `discover.rs`.

use longhaul_task::{Json, QuestionKind};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::jsonrpc::RpcError;
use crate::{question, text};

/// The name of the tasks extension in capabilities.
pub(crate) const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// A capability that a client can declare.
///
/// The order is stored: a session's token carries [`Capabilities`]. New ones go to the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Capability {
    /// The extension: the client takes a task instead of a result.
    Tasks,
    /// Tasks as a part of the revision before the extension. A stateless client that declares only these may read and cancel
    /// the tasks that it has made in this way.
    LegacyTasks,
    ElicitationForm,
    ElicitationUrl,
    Sampling,
    /// Sampling in which the model may use tools.
    SamplingTools,
    Roots,
    /// Sampling with context from servers.
    SamplingContext,
    /// The client can run sampling as a task of its own.
    SamplingTasks,
    /// The client can run an elicitation as a task of its own.
    ElicitationTasks,
    /// The server may cancel the client's own tasks.
    CancelTasks,
    /// The server may list the client's own tasks.
    ListTasks,
}

impl Capability {
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
    pub(crate) const fn declaration(self) -> &'static str {
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

    /// The capability that a client needs to answer such a question.
    pub fn to_answer(kind: QuestionKind, params: &Json) -> Self {
        match kind {
            QuestionKind::Elicitation if question::is_by_url(params) => Self::ElicitationUrl,
            QuestionKind::Elicitation => Self::ElicitationForm,
            QuestionKind::Sampling if question::offers_tools(params) => Self::SamplingTools,
            QuestionKind::Sampling => Self::Sampling,
            QuestionKind::Roots => Self::Roots,
        }
    }

    /// The capability that a client needs to answer such a question with a task; there is none for roots.
    pub const fn to_run_as_task(kind: QuestionKind) -> Option<Self> {
        match kind {
            QuestionKind::Elicitation => Some(Self::ElicitationTasks),
            QuestionKind::Sampling => Some(Self::SamplingTasks),
            QuestionKind::Roots => None,
        }
    }

    /// The error for a request of a client that did not declare it.
    pub fn missing(self) -> RpcError {
        RpcError::missing_capability(self.declaration())
    }

    /// The same, with what the request needs it for.
    pub fn missing_for(self, why: &str) -> RpcError {
        let mut missing = self.missing();
        missing.message = format!("{}. {why}", missing.message).into();
        missing
    }
}

/// The capabilities that a client declared: in each stateless request, or once for a session. Two bytes, so that a
/// session's token stays short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Capabilities(u16);

impl Capabilities {
    pub const fn has(self, capability: Capability) -> bool {
        self.0 & (1 << capability as u16) != 0
    }

    pub const fn and(self, capability: Capability) -> Self {
        Self(self.0 | (1 << capability as u16))
    }

    pub const fn without(self, capability: Capability) -> Self {
        Self(self.0 & !(1 << capability as u16))
    }

    /// Refuses a request that needs a capability which was not declared.
    pub fn require(self, capability: Capability) -> Result<(), RpcError> {
        if self.has(capability) { Ok(()) } else { Err(capability.missing()) }
    }

    pub fn can_answer(self, kind: QuestionKind, params: &Json) -> bool {
        self.has(Capability::to_answer(kind, params))
    }

    /// Whether there is any question that the client can answer.
    pub const fn can_be_asked(self) -> bool {
        self.has(Capability::ElicitationForm)
            || self.has(Capability::ElicitationUrl)
            || self.has(Capability::Sampling)
            || self.has(Capability::Roots)
    }

    /// For storage; [`from_bits`](Self::from_bits) reads it.
    pub const fn bits(self) -> u16 {
        self.0
    }

    pub const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }

    fn and_if(self, declared: bool, capability: Capability) -> Self {
        if declared { self.and(capability) } else { self }
    }

    /// Reads a capabilities object. A member that is not an object declares nothing; unknown members are ignored.
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

/// Whether there is an object at `path` inside `outer`.
fn has(outer: Option<&RawValue>, path: &[&str]) -> bool {
    let found = outer.and_then(|outer| path.iter().try_fold(outer, |object, name| text::member(object, name)));
    found.is_some_and(text::is_object)
}
