//! Prompts: what clients see of them, and what they may send them.
//!
//! ```
//! use longhaul_wire::prompt::{PromptArgument, PromptDeclaration};
//!
//! let prompt = PromptDeclaration::draft("code_review")
//!     .description("Asks for a review.")
//!     .argument(PromptArgument::required("code"))
//!     .declare()
//!     .unwrap();
//!
//! let arguments = serde_json::value::RawValue::from_string("{}".into()).unwrap();
//! assert!(prompt.check_arguments(&arguments).unwrap_err().message.contains("`code`"));
//! ```

mod result;

use longhaul_task::Json;
use serde_json::value::RawValue;

pub use result::{PromptMessage, PromptResult};
pub(crate) use result::{as_tool_result, write as write_result};

use crate::jsonrpc::{RpcError, quote};
use crate::list::{self, PageEnd};
use crate::presentation::{Presentation, write_title_and_description};
use crate::{Icon, ReplyTo, Revision, text};

/// The longest name of a prompt, in bytes.
pub const PROMPT_NAME_BYTES_MAX: usize = 128;

/// The most arguments that one prompt has.
pub const PROMPT_ARGUMENTS_MAX: usize = 64;

/// An argument of a prompt. Clients send every argument as a string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptArgument {
    name: String,
    title: Option<String>,
    description: Option<String>,
    is_required: bool,
}

impl PromptArgument {
    /// An argument that every request has to send.
    pub fn required(name: impl Into<String>) -> Self {
        Self { name: name.into(), title: None, description: None, is_required: true }
    }

    /// An argument that a request may leave out.
    pub fn optional(name: impl Into<String>) -> Self {
        Self { is_required: false, ..Self::required(name) }
    }

    /// A name for people.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// What the argument is for.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    fn write(&self, out: &mut String, revision: Revision) {
        out.push_str("{\"name\":");
        text::push_str(out, &self.name);
        write_title_and_description(out, self.title.as_deref(), self.description.as_deref(), revision);
        text::push_raw_member(out, "required", if self.is_required { "true" } else { "false" });
        out.push('}');
    }
}

/// A declaration in the making.
#[derive(Debug, Clone)]
pub struct PromptDraft {
    name: String,
    presentation: Presentation,
    arguments: Vec<PromptArgument>,
}

/// Why a prompt cannot be declared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PromptError {
    /// The name is empty, too long, or has control characters.
    #[error("the prompt name {0:?} must have 1 to {PROMPT_NAME_BYTES_MAX} bytes and no control characters")]
    Name(String),
    /// Two arguments have the same name, or one has none.
    #[error("the prompt {prompt:?} has two arguments {argument:?}, or one without a name")]
    Argument {
        /// The prompt.
        prompt: String,
        /// The name of the argument.
        argument: String,
    },
    /// There are too many arguments.
    #[error("the prompt {0:?} has more than {PROMPT_ARGUMENTS_MAX} arguments")]
    TooManyArguments(String),
    /// Values are completed for an argument that the prompt does not have.
    #[error("the prompt {prompt:?} completes the argument {argument:?}, which it does not have")]
    Completion {
        /// The prompt.
        prompt: String,
        /// The name of the argument.
        argument: String,
    },
    /// `_meta` is not an object.
    #[error("the `_meta` of the prompt {0:?} must be an object")]
    Meta(String),
}

impl PromptDraft {
    /// A name for people.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.presentation.title = Some(title.into());
        self
    }

    /// What it is for.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.presentation.description = Some(description.into());
        self
    }

    /// Adds an argument.
    pub fn argument(mut self, argument: PromptArgument) -> Self {
        self.arguments.push(argument);
        self
    }

    /// Adds an icon.
    pub fn icon(mut self, icon: Icon) -> Self {
        self.presentation.icons.push(icon);
        self
    }

    /// Additional data for clients: an object.
    pub fn meta(mut self, meta: Json) -> Self {
        self.presentation.meta = Some(meta);
        self
    }

    /// Checks everything that a client might refuse later.
    pub fn declare(self) -> Result<PromptDeclaration, PromptError> {
        let Self { name, presentation, arguments } = self;
        if !(1..=PROMPT_NAME_BYTES_MAX).contains(&name.len()) || name.chars().any(char::is_control) {
            return Err(PromptError::Name(name));
        }
        if arguments.len() > PROMPT_ARGUMENTS_MAX {
            return Err(PromptError::TooManyArguments(name));
        }
        for (index, PromptArgument { name: argument, .. }) in arguments.iter().enumerate() {
            if argument.is_empty() || arguments[..index].iter().any(|earlier| earlier.name == *argument) {
                return Err(PromptError::Argument { prompt: name, argument: argument.clone() });
            }
        }
        let Some(presentation) = presentation.with_meta_on_one_line() else { return Err(PromptError::Meta(name)) };
        Ok(PromptDeclaration { name, presentation, arguments })
    }
}

/// A prompt that may be listed and asked for.
#[derive(Debug)]
pub struct PromptDeclaration {
    name: String,
    presentation: Presentation,
    arguments: Vec<PromptArgument>,
}

impl PromptDeclaration {
    /// Begins a declaration.
    pub fn draft(name: impl Into<String>) -> PromptDraft {
        PromptDraft { name: name.into(), presentation: Presentation::default(), arguments: Vec::new() }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn arguments(&self) -> &[PromptArgument] {
        &self.arguments
    }

    pub fn has_argument(&self, name: &str) -> bool {
        self.arguments.iter().any(|argument| argument.name == name)
    }

    /// Whether every required argument is there and every argument is a string.
    pub fn check_arguments(&self, arguments: &RawValue) -> Result<(), RpcError> {
        let mut wrong = None;
        let mut missing: Vec<&str> =
            self.arguments.iter().filter(|known| known.is_required).map(PromptArgument::name).collect();
        text::each_member(arguments, |name, value| {
            missing.retain(|required| *required != name);
            if text::string(value).is_none() {
                wrong.get_or_insert_with(|| name.into_owned());
            }
        });
        if let Some(name) = wrong {
            let why = format!("The argument `{}` must be a string; all arguments of prompts are.", quote(&name));
            return Err(RpcError::invalid_params(why));
        }
        if !missing.is_empty() {
            let names = missing.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            let (word, is) = if missing.len() == 1 { ("argument", "is") } else { ("arguments", "are") };
            let why = format!("The required {word} {names} of the prompt `{}` {is} missing.", self.name);
            return Err(RpcError::invalid_params(why));
        }
        Ok(())
    }

    fn write(&self, out: &mut String, revision: Revision) {
        out.push_str("{\"name\":");
        text::push_str(out, &self.name);
        self.presentation.write_title_and_description(out, revision);
        if !self.arguments.is_empty() {
            out.push_str(",\"arguments\":");
            text::push_array(out, &self.arguments, |out, argument| argument.write(out, revision));
        }
        self.presentation.write_icons_and_meta(out, revision);
        out.push('}');
    }
}

/// The response to `prompts/list`.
pub fn list(to: &ReplyTo<'_>, prompts: &[&PromptDeclaration], end: PageEnd<'_>) -> String {
    list::page(to, "prompts", prompts.iter(), end, |out, prompt| prompt.write(out, to.revision))
}
