//! Jobs that are resumed or started again after a crash, for tests that kill the server.

use std::io::Write as _;
use std::time::Duration;

use longhaul::{Ctx, Failure, Form, FormAnswer, JsonSchema, NoArgs, OnCrash, TaskSupport, Tool};
use serde::Deserialize;

/// The default for the number of attempts of a job.
pub(crate) const ATTEMPTS_MAX: u32 = 1_000;

/// The default for the wait between the first attempt of a job and the second.
pub(crate) const BACKOFF_MS: u64 = 20;

pub(crate) fn tools(attempts_max: u32, backoff_ms: u64) -> Vec<Tool> {
    let backoff = Duration::from_millis(backoff_ms);
    vec![
        Tool::new("count_steps", count_steps)
            .description("Appends the numbers of its steps to a file, each in a recorded step that sleeps first.")
            .on_crash(OnCrash::Resume)
            .attempts(attempts_max, backoff)
            .task_support(TaskSupport::Required),
        Tool::new("retry_job", retry_job)
            .description("Appends the number of its attempt to a file, sleeps, and returns that number.")
            .on_crash(OnCrash::Retry)
            .attempts(attempts_max, backoff)
            .task_support(TaskSupport::Required),
        Tool::new("retry_confirm", retry_confirm)
            .description("Asks for a confirmation in each attempt. Returns the number of the attempt that got one.")
            .on_crash(OnCrash::Retry)
            .attempts(attempts_max, backoff)
            .task_support(TaskSupport::Required),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct RetryJob {
    millis: u64,
    file: String,
}

async fn retry_job(ctx: Ctx, RetryJob { millis, file }: RetryJob) -> Result<String, Failure> {
    let attempt = ctx.attempt();
    append(&file, &format!("attempt {attempt}"))?;
    tokio::time::sleep(Duration::from_millis(millis)).await;
    Ok(format!("attempt {attempt}"))
}

#[derive(Deserialize, JsonSchema)]
struct CountSteps {
    steps: u32,
    millis: u64,
    file: String,
}

async fn count_steps(mut ctx: Ctx, CountSteps { steps, millis, file }: CountSteps) -> Result<String, Failure> {
    for number in 1..=steps {
        ctx.step("count", || count(number, millis, &file)).await?;
    }
    Ok(format!("counted to {steps}"))
}

async fn count(number: u32, millis: u64, file: &str) -> std::io::Result<()> {
    tokio::time::sleep(Duration::from_millis(millis)).await;
    append(file, &number.to_string())
}

/// Appends a line in one write, so that a kill leaves the whole line or none of it.
fn append(file: &str, line: &str) -> std::io::Result<()> {
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(file)?;
    file.write_all(format!("{line}\n").as_bytes())
}

#[derive(Deserialize, JsonSchema)]
struct Confirmation {
    confirm: bool,
}

async fn retry_confirm(mut ctx: Ctx, _: NoArgs) -> Result<String, Failure> {
    let attempt = ctx.attempt();
    let FormAnswer::Accepted(Confirmation { confirm: true }) =
        ctx.ask("confirm", Form::<Confirmation>::new("Go on?")).await?
    else {
        return Err(Failure::tool("It was not confirmed."));
    };
    // Long enough for a crash to fall between the answer and the end.
    tokio::time::sleep(Duration::from_millis(100)).await;
    Ok(format!("attempt {attempt}"))
}
