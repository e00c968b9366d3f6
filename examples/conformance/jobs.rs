//! Jobs: slow ones, failing ones, ones that ask.

use std::time::Duration;

use longhaul::{
    Ctx, Failure, Form, FormAnswer, JsonSchema, NoArgs, OnCrash, Sampling, Subtask, TaskSupport, Tool, ToolLimits,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Tests kill the server many times while tasks wait.
const ATTEMPTS_MAX: u32 = 1_000;

const BACKOFF: Duration = Duration::from_millis(20);

pub(crate) fn tools() -> Vec<Tool> {
    vec![
        Tool::new("slow_compute", slow_compute).description("Takes that many seconds."),
        Tool::new("failing_job", failing_job)
            .description("Fails after a second, as a tool does.")
            .task_support(TaskSupport::Required),
        Tool::new("protocol_error_job", protocol_error_job)
            .description("Ends in a JSON-RPC error.")
            .task_support(TaskSupport::Required),
        Tool::new("confirm_delete", confirm_delete)
            .description("Asks before it (pretends to) delete a file.")
            .on_crash(OnCrash::Resume)
            .attempts(ATTEMPTS_MAX, BACKOFF)
            .task_support(TaskSupport::Required),
        Tool::new("multi_input", multi_input)
            .description("Asks two things at once.")
            .on_crash(OnCrash::Resume)
            .attempts(ATTEMPTS_MAX, BACKOFF)
            .task_support(TaskSupport::Required),
        Tool::new("ask_model", ask_model)
            .description("Asks the client's model.")
            .on_crash(OnCrash::Resume)
            .attempts(ATTEMPTS_MAX, BACKOFF)
            .task_support(TaskSupport::Required),
        Tool::new("fan_out", fan_out)
            .description("Makes that many subtasks; if told to, one that fails and one that asks.")
            .on_crash(OnCrash::Resume)
            .attempts(ATTEMPTS_MAX, BACKOFF)
            .task_support(TaskSupport::Required),
        Tool::new("test_tool_with_task", greet_as_task)
            .description("Asks for a name, then greets in a task.")
            .ask_first(ask_name)
            .task_support(TaskSupport::Required),
        Tool::new("echo", echo)
            .description("Says what it is told, at once.")
            // The benchmark's tool: a worker for every connection that it may use.
            .limits(ToolLimits::default().running_max(1_024)),
        Tool::new("empty_steps", empty_steps)
            .description("Records that many empty steps, then says what it is told: what recording costs.")
            .on_crash(OnCrash::Resume)
            .limits(ToolLimits::default().running_max(1_024)),
        Tool::new("big_result", big_result)
            .description("A result of that many bytes.")
            .task_support(TaskSupport::Required),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct SlowCompute {
    #[schemars(range(min = 0.0, max = 1_000_000.0))]
    seconds: f64,
    #[serde(default)]
    label: String,
}

async fn slow_compute(ctx: Ctx, SlowCompute { seconds, label }: SlowCompute) -> Result<String, Failure> {
    tokio::select! {
        () = tokio::time::sleep(Duration::from_secs_f64(seconds)) => Ok(format!("{label}: done after {seconds} s")),
        () = ctx.cancelled() => Err(Failure::tool("stopped")),
    }
}

async fn failing_job(_: Ctx, _: NoArgs) -> Result<String, Failure> {
    tokio::time::sleep(Duration::from_secs(1)).await;
    Err(Failure::tool("This job fails, as it should."))
}

async fn protocol_error_job(_: Ctx, _: NoArgs) -> Result<String, Failure> {
    Err(Failure::protocol(-32603, "This job ends in a protocol error, as it should."))
}

#[derive(Deserialize, JsonSchema)]
struct ConfirmDelete {
    filename: String,
}

#[derive(Deserialize, JsonSchema)]
struct Confirmation {
    /// Really?
    confirm: bool,
}

async fn confirm_delete(mut ctx: Ctx, ConfirmDelete { filename }: ConfirmDelete) -> Result<String, Failure> {
    let question = Form::<Confirmation>::new(format!("Delete {filename}?"));
    Ok(match ctx.ask("confirm", question).await? {
        FormAnswer::Accepted(Confirmation { confirm: true }) => format!("{filename} is deleted."),
        _ => format!("{filename} is kept."),
    })
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

async fn multi_input(mut ctx: Ctx, _: NoArgs) -> Result<String, Failure> {
    let who = ctx.fork("who", |mut ctx| async move {
        let question = Form::<Name>::new("What is your name?");
        ctx.ask("name", question).await
    });
    let whether = ctx.fork("whether", |mut ctx| async move {
        let question = Form::<Confirmation>::new("Go on?");
        ctx.ask("confirm", question).await
    });
    let (name, confirmed) = tokio::join!(who, whether);
    let name = match name? {
        FormAnswer::Accepted(Name { name }) => name,
        _ => "nobody".into(),
    };
    let confirmed = matches!(confirmed?, FormAnswer::Accepted(Confirmation { confirm: true }));
    Ok(format!("{name} said {}.", if confirmed { "yes" } else { "no" }))
}

#[derive(Deserialize, JsonSchema)]
struct AskModel {
    prompt: String,
}

async fn ask_model(mut ctx: Ctx, AskModel { prompt }: AskModel) -> Result<String, Failure> {
    Ok(ctx.ask("model", Sampling::new(prompt)).await?.text())
}

#[derive(Deserialize, JsonSchema)]
struct FanOut {
    #[schemars(range(max = 10_000))]
    children: u32,
    millis: u32,
    /// The first child fails.
    #[serde(default)]
    fail: bool,
    /// The last child asks.
    #[serde(default)]
    ask: bool,
}

/// Answers with the texts of its children in order, one on each line: of a child that failed, with its error.
async fn fan_out(mut ctx: Ctx, FanOut { children, millis, fail, ask }: FanOut) -> Result<String, Failure> {
    let seconds = f64::from(millis) / 1_000.0;
    let requests = (1..=children).map(|number| {
        let label = format!("child {number}");
        match number {
            1 if fail => Subtask::new("failing_job", json!({})),
            _ if ask && number == children => Subtask::new("confirm_delete", json!({ "filename": label })),
            _ => Subtask::new("slow_compute", json!({ "seconds": seconds, "label": label })),
        }
    });
    let ended = ctx.subtasks("children", requests).await?;
    let texts = ended.iter().map(|child| child.text().or_else(|failed| child.error().ok_or(failed)));
    Ok(texts.collect::<Result<Vec<_>, _>>()?.join("\n"))
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Greeting {
    name: String,
}

async fn ask_name(mut ctx: Ctx, _: NoArgs) -> Result<Greeting, Failure> {
    match ctx.ask("user_name", Form::<Name>::new("What is your name?")).await? {
        FormAnswer::Accepted(Name { name }) => Ok(Greeting { name }),
        _ => Err(Failure::tool("It takes a name.")),
    }
}

async fn greet_as_task(_: Ctx, Greeting { name }: Greeting) -> Result<String, Failure> {
    Ok(format!("Hello, {name}, from a task!"))
}

#[derive(Deserialize, JsonSchema)]
struct Echo {
    text: String,
}

async fn echo(_: Ctx, Echo { text }: Echo) -> Result<String, Failure> {
    Ok(text)
}

#[derive(Deserialize, JsonSchema)]
struct EmptySteps {
    #[schemars(range(max = 10_000))]
    steps: u32,
    text: String,
}

async fn empty_steps(mut ctx: Ctx, EmptySteps { steps, text }: EmptySteps) -> Result<String, Failure> {
    for _ in 0..steps {
        ctx.step("empty", || async { Ok::<_, Failure>(()) }).await?;
    }
    Ok(text)
}

#[derive(Deserialize, JsonSchema)]
struct BigResult {
    #[schemars(range(max = 15_000_000))]
    bytes: usize,
}

async fn big_result(_: Ctx, BigResult { bytes }: BigResult) -> Result<String, Failure> {
    Ok("x".repeat(bytes))
}
