//! Declaring a tool.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use longhaul_engine::{Ctx, CtxError, Failure, Handler, ToolLimits};
use longhaul_receiver::{CallRules, CatalogueEntry};
use longhaul_task::{Json, OnCrash, Outcome, Policy, Retention, ToolRef};
use longhaul_wire::content::ToolResult;
use longhaul_wire::question;
use longhaul_wire::tool::{Annotations, ArgumentReader, TaskSupport, ToolDeclaration, ToolError};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::{IntoToolResult, arguments, schema, task_result};

/// A tool: what clients see, what it does, and what happens to its tasks.
///
/// ```
/// use longhaul::{Ctx, OnCrash, Tool};
/// # use longhaul::JsonSchema;
///
/// #[derive(serde::Deserialize, JsonSchema)]
/// struct Pages {
///     /// How many pages to write.
///     pages: u32,
/// }
///
/// let tool = Tool::new("write_book", |mut ctx: Ctx, Pages { pages }| async move {
///     for page in 1..=pages {
///         ctx.progress(page, pages, &format!("page {page}")).await?;
///     }
///     Ok(format!("{pages} pages written"))
/// })
/// .description("Writes a book.")
/// .on_crash(OnCrash::Retry);
/// ```
pub struct Tool {
    name: String,
    version: String,
    title: Option<String>,
    description: Option<String>,
    input_schema: Json,
    argument_reader: ArgumentReader,
    output_schema: Option<Json>,
    annotations: Annotations,
    task_support: TaskSupport,
    immediate_response: Option<String>,
    policy: Policy,
    retention: Retention,
    limits: ToolLimits,
    retries_failures: bool,
    call_rules: CallRules,
    handler: Arc<dyn Handler>,
    prelude: Option<Arc<dyn Handler>>,
}

/// How long a task is kept after its creation, unless the tool says otherwise.
pub(crate) const RETENTION_MS: u64 = 24 * 60 * 60 * 1_000;

impl Tool {
    /// A tool from an async function of a [`Ctx`] and typed arguments. The input schema is derived from the arguments.
    pub fn new<A, R, F, Fut>(name: impl Into<String>, handler: F) -> Self
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        R: IntoToolResult + 'static,
        F: Fn(Ctx, A) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, Failure>> + Send + 'static,
    {
        let name = name.into();
        Self {
            version: "1".into(),
            title: None,
            description: None,
            input_schema: schema::of::<A>(),
            argument_reader: arguments::check::<A>,
            output_schema: R::output_schema(),
            annotations: Annotations::default(),
            task_support: TaskSupport::Optional,
            immediate_response: None,
            policy: Policy::default(),
            retention: Retention::FromCreation(RETENTION_MS),
            limits: ToolLimits::default(),
            retries_failures: false,
            call_rules: CallRules::default(),
            handler: result_handler(handler),
            prelude: None,
            name,
        }
    }

    /// Runs this function before there is a task, for example to ask questions. Clients send the arguments of this function;
    /// what it returns becomes the arguments of the tool's own function.
    pub fn ask_first<A, B, F, Fut>(self, prelude: F) -> Self
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        B: serde::Serialize + 'static,
        F: Fn(Ctx, A) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<B, Failure>> + Send + 'static,
    {
        let prelude = handler(prelude, |arguments: B| {
            let body = Json::from_text(serde_json::to_string(&arguments)?);
            Ok(Outcome::Result { body, is_error: false })
        });
        Self { input_schema: schema::of::<A>(), argument_reader: arguments::check::<A>, prelude: Some(prelude), ..self }
    }

    /// The version of the function. A task runs only on the version that it was created for. Default: `1`.
    pub fn version(self, version: impl Into<String>) -> Self {
        Self { version: version.into(), ..self }
    }

    /// A name for people.
    pub fn title(self, title: impl Into<String>) -> Self {
        Self { title: Some(title.into()), ..self }
    }

    /// The description for models and people.
    pub fn description(self, description: impl Into<String>) -> Self {
        Self { description: Some(description.into()), ..self }
    }

    /// The schema of the arguments, instead of the derived one.
    pub fn input_schema(self, schema: &serde_json::Value) -> Self {
        Self { input_schema: Json::from_text(schema.to_string()), ..self }
    }

    /// The schema of the structured content of results, instead of the derived one. Results are not checked against it.
    pub fn output_schema(self, schema: &serde_json::Value) -> Self {
        Self { output_schema: Some(Json::from_text(schema.to_string())), ..self }
    }

    /// Hints for clients.
    pub fn annotations(self, annotations: Annotations) -> Self {
        Self { annotations, ..self }
    }

    /// Whether a call becomes a task. By default it does if the client supports tasks.
    pub fn task_support(self, task_support: TaskSupport) -> Self {
        Self { task_support, ..self }
    }

    /// A sentence with which the model continues while the task runs, for clients that pass it to the model.
    pub fn immediate_response(self, sentence: impl Into<String>) -> Self {
        Self { immediate_response: Some(sentence.into()), ..self }
    }

    /// What happens to a running task when the server crashes. By default it fails.
    pub fn on_crash(mut self, on_crash: OnCrash) -> Self {
        self.policy.on_crash = on_crash;
        self
    }

    /// The maximum number of attempts, and the wait before the second one; the wait then doubles. With [`OnCrash::Resume`], the
    /// count begins again when an attempt is lost that has recorded something.
    pub fn attempts(mut self, attempts_max: u32, backoff: Duration) -> Self {
        self.policy.attempts_max = attempts_max;
        self.policy.backoff_ms = ms(backoff);
        self
    }

    /// The most attempts in all. Default: 5.
    pub fn attempts_max(mut self, attempts_max: u32) -> Self {
        self.policy.attempts_max = attempts_max;
        self
    }

    /// The wait before the second attempt; it then doubles. Default: 1 s.
    pub fn backoff(mut self, backoff: Duration) -> Self {
        self.policy.backoff_ms = ms(backoff);
        self
    }

    /// The longest wait between two attempts. Default: 1 min.
    pub fn backoff_max(mut self, backoff_max: Duration) -> Self {
        self.policy.backoff_ms_max = ms(backoff_max);
        self
    }

    /// Runs the function again when it returns a tool error, as often and with the waits that [`attempts`](Self::attempts)
    /// sets. A [permanent](Failure::permanent) failure ends the task at once. With [`OnCrash::Resume`] the recorded steps
    /// keep their outputs and failures; to try a step again, use [`Step::retry`](longhaul_engine::Step::retry).
    pub fn retry_failures(self) -> Self {
        Self { retries_failures: true, ..self }
    }

    /// The longest time that the function may run without waiting for an answer.
    pub fn running_time_max(mut self, limit: Duration) -> Self {
        self.policy.running_ms_max = ms(limit);
        self
    }

    /// The longest time from the creation of a task to its end.
    pub fn life_time_max(mut self, limit: Duration) -> Self {
        self.policy.life_ms_max = ms(limit);
        self
    }

    /// How long a task and its result are kept.
    pub fn retention(self, retention: Retention) -> Self {
        Self { retention, ..self }
    }

    /// Limits of this tool: attempts at once, sizes, times.
    pub fn limits(self, limits: ToolLimits) -> Self {
        Self { limits, ..self }
    }

    /// The time within which a call that is done is answered with its result, also if its client takes tasks; a longer one is
    /// answered with the task. The task exists from the start in both cases. This applies where the client leaves it
    /// to the server whether a call becomes a task. By default every such call is answered with its task.
    pub fn answers_within(mut self, time: Duration) -> Self {
        self.call_rules.answers_within = Some(time);
        self
    }

    /// Cancels the task of a call when a client that knows no tasks gives up or disconnects while it waits. A client of an HTTP
    /// session that disconnects can resume its stream until the answer to its call is due. By default the task goes on, and the
    /// client finds it with `task_list` or by making the same call again.
    pub fn cancel_abandoned_calls(mut self) -> Self {
        self.call_rules.cancels_abandoned = true;
        self
    }

    /// The rules for calls that wait for their task. A tool that changes nothing, or that can be called twice with the effect of
    /// one call, lets the same call join a task that still runs.
    pub(crate) fn call_rules(&self) -> CallRules {
        let joins = self.annotations.idempotent == Some(true) || self.annotations.read_only == Some(true);
        CallRules { joins, ..self.call_rules.clone() }
    }

    pub(crate) fn asks_first(&self) -> bool {
        self.prelude.is_some()
    }

    /// The entry of the catalogue, and what the engine runs.
    pub(crate) fn entry(self) -> Result<(CatalogueEntry, Vec<longhaul_engine::EngineTool>), ToolError> {
        let (immediate_response, rules) = (self.immediate_response.clone(), self.call_rules());
        let (declaration, engine) = self.split()?;
        Ok((CatalogueEntry::tool(declaration, immediate_response, rules), vec![engine]))
    }

    /// Splits the tool into what clients see and what the engine runs.
    pub(crate) fn split(self) -> Result<(ToolDeclaration, longhaul_engine::EngineTool), ToolError> {
        let mut draft = ToolDeclaration::draft(self.name.as_str())
            .input_schema(self.input_schema)
            .argument_reader(self.argument_reader)
            .annotations(self.annotations)
            .task_support(self.task_support);
        if let Some(title) = self.title {
            draft = draft.title(title);
        }
        if let Some(description) = self.description {
            draft = draft.description(description);
        }
        if let Some(schema) = self.output_schema {
            draft = draft.output_schema(schema);
        }
        let engine = longhaul_engine::EngineTool {
            tool: ToolRef::new(self.name, self.version),
            policy: self.policy,
            result_kind: "tool",
            retention: self.retention,
            limits: self.limits,
            error_text: task_result::error_text,
            check_answer: |kind, params, answer| {
                let answer = serde_json::from_str::<&RawValue>(answer.as_str()).map_err(|error| error.to_string())?;
                question::check_parts(None, kind, params, answer).map_err(|wrong| wrong.why().to_owned())
            },
            retries_failures: self.retries_failures,
            handler: self.handler,
            prelude: self.prelude,
        };
        Ok((draft.declare()?, engine))
    }
}

impl std::fmt::Debug for Tool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tool").field("name", &self.name).finish_non_exhaustive()
    }
}

pub(crate) fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn result_handler<A, R, F, Fut>(function: F) -> Arc<dyn Handler>
where
    A: DeserializeOwned + Send + 'static,
    R: IntoToolResult + 'static,
    F: Fn(Ctx, A) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, Failure>> + Send + 'static,
{
    handler(function, |answer: R| {
        let result = answer.into_result()?;
        let is_error = result.is_error();
        Ok(Outcome::Result { body: result.into_json(), is_error })
    })
}

/// A handler of the engine from a function of typed arguments.
fn handler<A, R, F, Fut>(function: F, end: fn(R) -> Result<Outcome, Failure>) -> Arc<dyn Handler>
where
    A: DeserializeOwned + Send + 'static,
    R: 'static,
    F: Fn(Ctx, A) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, Failure>> + Send + 'static,
{
    let function = Arc::new(function);
    Arc::new(move |ctx: Ctx, input: Json| {
        let function = Arc::clone(&function);
        let running: std::pin::Pin<Box<dyn Future<Output = Result<Outcome, CtxError>> + Send>> = Box::pin(async move {
            // The arguments of a client were checked before the call began; those that `ask_first` returned were not.
            let ended = match arguments::read(input.as_str()) {
                Ok(arguments) => function(ctx, arguments).await.and_then(end),
                Err(error) => Err(Failure::tool(format!("the arguments do not fit this tool: {error}"))),
            };
            ended.or_else(outcome_of_failure)
        });
        running
    })
}

/// The outcome of a handler that failed.
fn outcome_of_failure(failure: Failure) -> Result<Outcome, CtxError> {
    match failure {
        Failure::Protocol(error) => Ok(Outcome::Error(error)),
        Failure::Stop(stop) => Err(stop),
        Failure::Permanent(message) => {
            let body = ToolResult::error(&message).into_json();
            Err(CtxError::Final(Box::new(Outcome::Result { body, is_error: true })))
        }
        other => Ok(Outcome::Result { body: ToolResult::error(&other.message()).into_json(), is_error: true }),
    }
}
