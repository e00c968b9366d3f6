//! Jobs that are started again after a crash, for tests that kill the server.

use std::io::Write as _;
use std::time::Duration;

use longhaul::{Ctx, Failure, Form, FormAnswer, JsonSchema, NoArgs, OnCrash, TaskSupport, Tool};
use serde::Deserialize;

pub(crate) fn tools() -> Vec<Tool> {
    vec![
        Tool::new("retry_job", retry_job)
            .description("Appends its attempt to a file, sleeps, and says which attempt it was.")
            .on_crash(OnCrash::Retry)
            .attempts(1_000, Duration::from_millis(20))
            .task_support(TaskSupport::Required),
        Tool::new("retry_confirm", retry_confirm)
            .description("Asks, and asks anew if it is started again. Says in which attempt it got its answer.")
            .on_crash(OnCrash::Retry)
            .attempts(1_000, Duration::from_millis(20))
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
    let mut trace = std::fs::OpenOptions::new().create(true).append(true).open(file)?;
    // In one write: a kill leaves the whole line or none of it.
    trace.write_all(format!("attempt {attempt}\n").as_bytes())?;
    tokio::time::sleep(Duration::from_millis(millis)).await;
    Ok(format!("attempt {attempt}"))
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
