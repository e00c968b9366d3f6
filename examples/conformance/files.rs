//! Jobs that leave a trace in a file, for tests that kill the server.

use std::io::Write as _;
use std::time::Duration;

use longhaul::{Ctx, Failure, JsonSchema, OnCrash, TaskSupport, Tool};
use serde::Deserialize;

pub(crate) fn tools() -> Vec<Tool> {
    vec![
        Tool::new("retry_job", retry_job)
            .description("Appends its attempt to a file, sleeps, and says which attempt it was.")
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
    writeln!(trace, "attempt {attempt}")?;
    tokio::time::sleep(Duration::from_millis(millis)).await;
    Ok(format!("attempt {attempt}"))
}
