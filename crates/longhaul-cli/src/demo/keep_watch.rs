use std::time::Duration;

use longhaul::{Ctx, Failure, NoArgs, TaskSupport, Tool};

/// Runs until it is cancelled, so only a client that supports tasks can call it.
pub(super) fn tool() -> Tool {
    Tool::new("keep_watch", watch)
        .title("Keep watch")
        .description("Watches until it is cancelled.")
        .task_support(TaskSupport::Required)
}

async fn watch(mut ctx: Ctx, _: NoArgs) -> Result<String, Failure> {
    for seconds in 0_u32.. {
        ctx.progress(seconds, None, &format!("All quiet for {seconds} s")).await?;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    Ok("The watch is over.".into())
}
