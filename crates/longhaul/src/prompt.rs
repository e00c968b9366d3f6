//! Declaring a prompt.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use longhaul_engine::{Ctx, EngineTool, Failure, ToolLimits};
use longhaul_receiver::{CatalogueEntry, CataloguePrompt};
use longhaul_task::{Json, OnCrash};
use longhaul_wire::Icon;
use longhaul_wire::call_result::function_name;
use longhaul_wire::jsonrpc::code;
use longhaul_wire::prompt::{PromptArgument, PromptDeclaration, PromptDraft, PromptError, PromptMessage, PromptResult};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::CompletionRequest;
use crate::completion::Completers;
use crate::function::{self, FunctionRules};
use crate::text_arguments::TextArguments;

/// A prompt: messages that a user picks by name, such as a slash command, made from a few arguments.
///
/// Its function is async, gets a [`Ctx`] and may ask the client, like that of a [`Tool`](crate::Tool).
///
/// ```
/// use longhaul::{Ctx, JsonSchema, Prompt};
///
/// #[derive(serde::Deserialize, JsonSchema)]
/// struct Review {
///     /// The code to review.
///     code: String,
///     language: Option<String>,
/// }
///
/// let prompt = Prompt::new("code_review", |_: Ctx, Review { code, language }| async move {
///     let language = language.unwrap_or("the".into());
///     Ok(format!("Please review this {language} code:\n{code}"))
/// })
/// .description("Asks for a review.")
/// .complete_from("language", ["Go", "Python", "Rust"]);
/// ```
pub struct Prompt {
    name: String,
    draft: PromptDraft,
    arguments: TextArguments,
    completers: Completers,
    rules: FunctionRules,
    function: Arc<PromptFunction>,
}

type PromptFuture = Pin<Box<dyn Future<Output = Result<Json, Failure>> + Send>>;
type PromptFunction = dyn Fn(Ctx, BTreeMap<String, String>) -> PromptFuture + Send + Sync;

impl Prompt {
    /// A prompt from an async function of a [`Ctx`] and typed arguments. Clients send arguments as texts; fields may also
    /// be numbers or booleans. Use [`NoArgs`](crate::NoArgs) for a prompt without arguments.
    pub fn new<A, R, F, Fut>(name: impl Into<String>, function: F) -> Self
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        R: IntoPromptResult + 'static,
        F: Fn(Ctx, A) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, Failure>> + Send + 'static,
    {
        let name = name.into();
        let arguments = TextArguments::of::<A>();
        let (read, function) = (arguments.clone(), Arc::new(function));
        let function = move |ctx: Ctx, values: BTreeMap<String, String>| -> PromptFuture {
            let read = read.read::<A>(values);
            let function = Arc::clone(&function);
            Box::pin(async move {
                let wrong = |error| format!("The arguments do not fit this prompt: {error}");
                let arguments = read.map_err(|error| Failure::protocol(code::INVALID_PARAMS, &wrong(error)))?;
                Ok(function(ctx, arguments).await?.into_prompt()?.into_json())
            })
        };
        Self {
            draft: PromptDeclaration::draft(name.as_str()),
            name,
            arguments,
            completers: Completers::default(),
            rules: FunctionRules::default(),
            function: Arc::new(function),
        }
    }

    /// A name for people.
    pub fn title(self, title: impl Into<String>) -> Self {
        Self { draft: self.draft.title(title), ..self }
    }

    /// What it is for.
    pub fn description(self, description: impl Into<String>) -> Self {
        Self { draft: self.draft.description(description), ..self }
    }

    /// Adds an icon.
    pub fn icon(self, icon: Icon) -> Self {
        Self { draft: self.draft.icon(icon), ..self }
    }

    /// Additional data for clients: an object, sent as `_meta`.
    pub fn meta(self, meta: &serde_json::Value) -> Self {
        Self { draft: self.draft.meta(Json::from_text(meta.to_string())), ..self }
    }

    /// Completes an argument while the user types it. The function returns the matching values, the best first; clients
    /// get at most 100 of them.
    pub fn complete<F, Fut>(mut self, argument: impl Into<String>, function: F) -> Self
    where
        F: Fn(CompletionRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<String>, Failure>> + Send + 'static,
    {
        self.completers.add(argument.into(), function);
        self
    }

    /// Completes an argument from a fixed list.
    pub fn complete_from<V: Into<String>>(
        mut self,
        argument: impl Into<String>,
        values: impl IntoIterator<Item = V>,
    ) -> Self {
        self.completers.add_values(argument.into(), values.into_iter().map(Into::into).collect());
        self
    }

    /// Limits of its function: calls at once, sizes.
    pub fn limits(mut self, limits: ToolLimits) -> Self {
        self.rules.limits = limits;
        self
    }

    /// Runs it as a task for clients that ask for one, in the generations where a prompt can be a task: SEP-1686 and the
    /// dialect of the lesson. `on_crash` says what happens to such a task when the server crashes. Other clients wait for
    /// the messages, and without this call all clients do: the request for a task is ignored.
    ///
    /// A task of a prompt has no subtasks, because their results would have to be prompts, too; use
    /// [`step`](Ctx::step)s.
    pub fn durable(mut self, on_crash: OnCrash) -> Self {
        self.rules.on_crash = Some(on_crash);
        self
    }

    /// What clients see, and what the engine runs.
    pub(crate) fn split(self) -> Result<(CatalogueEntry, Vec<EngineTool>), PromptError> {
        #[derive(Deserialize)]
        struct PromptInput {
            arguments: BTreeMap<String, String>,
        }
        let draft = self.arguments.iter().fold(self.draft, |draft, argument| {
            let name = argument.name.as_str();
            let mut shown =
                if argument.is_required { PromptArgument::required(name) } else { PromptArgument::optional(name) };
            if let Some(title) = &argument.title {
                shown = shown.title(title);
            }
            if let Some(description) = &argument.description {
                shown = shown.description(description);
            }
            draft.argument(shown)
        });
        let declaration = draft.declare()?;
        if let Some(argument) = self.completers.arguments().find(|name| !declaration.has_argument(name)) {
            return Err(PromptError::Completion { prompt: self.name, argument: argument.to_owned() });
        }
        let engine_name = function_name("prompts/get", &self.name);
        let (function, is_durable) = (self.function, self.rules.on_crash.is_some());
        let own = function::engine_tool(engine_name.clone(), "prompt", self.rules, move |ctx, input: PromptInput| {
            function(ctx, input.arguments)
        });
        let (completions, completing) = self.completers.split(&engine_name).unzip();
        let prompt = CataloguePrompt { declaration, engine_name: engine_name.into(), is_durable, completions };
        Ok((CatalogueEntry::Prompt(Arc::new(prompt)), [Some(own), completing].into_iter().flatten().collect()))
    }
}

impl fmt::Debug for Prompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prompt").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Something that the function of a prompt can return: a text, which becomes a message of the user, one or more
/// [`PromptMessage`]s, or a [`PromptResult`].
pub trait IntoPromptResult {
    /// The messages.
    fn into_prompt(self) -> Result<PromptResult, Failure>;
}

impl IntoPromptResult for PromptResult {
    fn into_prompt(self) -> Result<PromptResult, Failure> {
        Ok(self)
    }
}

impl IntoPromptResult for PromptMessage {
    fn into_prompt(self) -> Result<PromptResult, Failure> {
        Ok(PromptResult::new().with(self))
    }
}

impl IntoPromptResult for String {
    fn into_prompt(self) -> Result<PromptResult, Failure> {
        PromptMessage::user(self).into_prompt()
    }
}

impl IntoPromptResult for &str {
    fn into_prompt(self) -> Result<PromptResult, Failure> {
        PromptMessage::user(self).into_prompt()
    }
}

impl IntoPromptResult for Vec<PromptMessage> {
    fn into_prompt(self) -> Result<PromptResult, Failure> {
        Ok(self.into_iter().fold(PromptResult::new(), PromptResult::with))
    }
}

impl<const N: usize> IntoPromptResult for [PromptMessage; N] {
    fn into_prompt(self) -> Result<PromptResult, Failure> {
        Vec::from(self).into_prompt()
    }
}
