//! Questions of a handler: [`Form`], [`Sampling`], [`Roots`].

use std::marker::PhantomData;

use longhaul_engine::{Ask, CtxError};
use longhaul_task::{Json, QuestionKind};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::{arguments, schema};

fn read<T: DeserializeOwned>(answer: &Json) -> Result<T, CtxError> {
    serde_json::from_str(answer.as_str()).map_err(|error| CtxError::BadAnswer(error.to_string()))
}

/// A form for the user to fill in: the fields are those of `T`.
///
/// ```no_run
/// # use longhaul::{Ctx, Failure, Form, FormAnswer, JsonSchema};
/// #[derive(serde::Deserialize, JsonSchema)]
/// struct Approval {
///     approve: bool,
/// }
///
/// # async fn handler(mut ctx: Ctx) -> Result<String, Failure> {
/// match ctx.ask("approval", Form::<Approval>::new("Deploy to production?")).await? {
///     FormAnswer::Accepted(Approval { approve: true }) => Ok("deploying".into()),
///     _ => Err(Failure::tool("the deployment was not approved")),
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct Form<T> {
    message: String,
    fields: PhantomData<fn() -> T>,
}

/// The user's answer to a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FormAnswer<T> {
    /// The user filled it in.
    Accepted(T),
    /// The user said no.
    Declined,
    /// The user closed it without an answer.
    Dismissed,
}

impl<T> Form<T> {
    /// A form with this message above it.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), fields: PhantomData }
    }
}

#[derive(Deserialize)]
struct ElicitResult {
    action: String,
    content: Option<Box<RawValue>>,
}

impl<T: JsonSchema + DeserializeOwned> Ask for Form<T> {
    type Answer = FormAnswer<T>;

    fn kind(&self) -> QuestionKind {
        QuestionKind::Elicitation
    }

    fn params(&self) -> Json {
        let schema = schema::of_form::<T>();
        let params = json!({ "mode": "form", "message": self.message, "requestedSchema": schema });
        Json::from_text(params.to_string())
    }

    fn read(&self, answer: &Json) -> Result<FormAnswer<T>, CtxError> {
        let result: ElicitResult = read(answer)?;
        match result.action.as_str() {
            "accept" => {
                let content = result.content.as_ref().map_or("{}", |content| content.get());
                let fields = arguments::read(content).map_err(|error| CtxError::BadAnswer(error.to_string()))?;
                Ok(FormAnswer::Accepted(fields))
            }
            "decline" => Ok(FormAnswer::Declined),
            _ => Ok(FormAnswer::Dismissed),
        }
    }
}

/// A page for the user to visit, to sign in or to pay for example. What happens on the page is between the user and the
/// page; the answer only says whether the user agreed to go there.
///
/// ```no_run
/// # use longhaul::{Ctx, Failure, FormAnswer, Visit};
/// # async fn handler(mut ctx: Ctx) -> Result<(), Failure> {
/// let page = Visit::new("Please sign in.", "https://example.com/login?task=7");
/// if ctx.ask("sign-in", page).await? != FormAnswer::Accepted(()) {
///     return Err(Failure::tool("the user did not sign in"));
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Visit {
    message: String,
    url: String,
}

impl Visit {
    /// Asks the user to visit the page, with this message.
    pub fn new(message: impl Into<String>, url: impl Into<String>) -> Self {
        Self { message: message.into(), url: url.into() }
    }
}

impl Ask for Visit {
    type Answer = FormAnswer<()>;

    fn kind(&self) -> QuestionKind {
        QuestionKind::Elicitation
    }

    fn params(&self) -> Json {
        let Self { message, url } = self;
        // The ID only has to tell the pages of one client apart.
        let params = json!({ "mode": "url", "message": message, "url": url, "elicitationId": url });
        Json::from_text(params.to_string())
    }

    fn read(&self, answer: &Json) -> Result<FormAnswer<()>, CtxError> {
        let result: ElicitResult = read(answer)?;
        Ok(match result.action.as_str() {
            "accept" => FormAnswer::Accepted(()),
            "decline" => FormAnswer::Declined,
            _ => FormAnswer::Dismissed,
        })
    }
}

/// A prompt for the client's model.
#[derive(Debug, Clone)]
pub struct Sampling {
    prompt: String,
    system: Option<String>,
    tokens_max: u32,
}

/// The answer of the client's model.
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct SamplingAnswer {
    /// The model's name.
    pub model: String,
    /// One content block, or an array of them.
    pub content: Value,
    /// Why the model stopped.
    #[serde(rename = "stopReason")]
    pub stop_reason: Option<String>,
}

impl SamplingAnswer {
    /// The texts of all blocks, joined by line breaks.
    pub fn text(&self) -> String {
        let blocks = match &self.content {
            Value::Array(blocks) => blocks.as_slice(),
            one => std::slice::from_ref(one),
        };
        blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
    }
}

impl Sampling {
    /// A prompt in the role of the user.
    pub fn new(prompt: impl Into<String>) -> Self {
        Self { prompt: prompt.into(), system: None, tokens_max: 1_000 }
    }

    /// The system prompt.
    pub fn system(self, system: impl Into<String>) -> Self {
        Self { system: Some(system.into()), ..self }
    }

    /// The most tokens of the answer. Default: 1,000.
    pub fn tokens_max(self, tokens_max: u32) -> Self {
        Self { tokens_max, ..self }
    }
}

impl Ask for Sampling {
    type Answer = SamplingAnswer;

    fn kind(&self) -> QuestionKind {
        QuestionKind::Sampling
    }

    fn params(&self) -> Json {
        let message = json!({ "role": "user", "content": { "type": "text", "text": self.prompt } });
        let mut params = json!({ "messages": [message], "maxTokens": self.tokens_max });
        if let Some(system) = &self.system {
            params["systemPrompt"] = json!(system);
        }
        Json::from_text(params.to_string())
    }

    fn read(&self, answer: &Json) -> Result<SamplingAnswer, CtxError> {
        read(answer)
    }
}

/// A question for the folders that the client works in.
#[derive(Debug, Clone, Copy, Default)]
pub struct Roots;

/// A folder of the client.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct Root {
    /// A `file:` URI.
    pub uri: String,
    /// A name for people.
    pub name: Option<String>,
}

impl Ask for Roots {
    type Answer = Vec<Root>;

    fn kind(&self) -> QuestionKind {
        QuestionKind::Roots
    }

    fn params(&self) -> Json {
        Json::from_text("{}")
    }

    fn read(&self, answer: &Json) -> Result<Vec<Root>, CtxError> {
        #[derive(Deserialize)]
        struct ListRootsResult {
            roots: Vec<Root>,
        }
        read::<ListRootsResult>(answer).map(|result| result.roots)
    }
}
