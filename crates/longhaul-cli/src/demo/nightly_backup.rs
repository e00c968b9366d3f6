use std::time::Duration;

use longhaul::{Ctx, Failure, JsonSchema, OnCrash, Tool};
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct BackupArguments {
    /// How many seconds to take, at most 3600.
    #[serde(default = "seconds")]
    #[schemars(range(min = 1, max = 3600))]
    seconds: u32,
}

fn seconds() -> u32 {
    30
}

/// A tool that runs again after a crash. To see it, kill the server while the tool runs, and start the server again.
pub(super) fn tool() -> Tool {
    Tool::new("nightly_backup", back_up)
        .title("Nightly backup")
        .description("A (pretended) backup. It restarts if the server crashes, and its result counts the attempts.")
        .on_crash(OnCrash::Retry)
        .attempts(10, Duration::from_millis(200))
}

async fn back_up(mut ctx: Ctx, BackupArguments { seconds }: BackupArguments) -> Result<String, Failure> {
    let attempt = ctx.attempt();
    for second in 0..seconds {
        ctx.progress(second, seconds, &format!("Attempt {attempt}: {second} of {seconds} volumes")).await?;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    Ok(format!("{seconds} volumes are safe. It took {attempt} attempt{}.", if attempt == 1 { "" } else { "s" }))
}
