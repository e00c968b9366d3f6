use std::time::Duration;

use longhaul::{Ctx, Failure, Form, FormAnswer, JsonSchema, OnCrash, Tool};
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Target {
    /// Where to deploy to.
    environment: String,
}

#[derive(Deserialize, JsonSchema)]
struct Approval {
    /// Go ahead?
    approve: bool,
}

/// Asks for approval in the middle of its work, and waits for it as long as that takes.
pub(super) fn tool() -> Tool {
    Tool::new("deploy", deploy)
        .title("Deploy")
        .description("Prepares a (pretended) deployment, asks for approval, and carries it out.")
        // Approval may take days, and the server may be restarted meanwhile. A finished build is not repeated, and the
        // question is not asked again.
        .on_crash(OnCrash::Resume)
}

async fn deploy(mut ctx: Ctx, Target { environment }: Target) -> Result<String, Failure> {
    ctx.progress(1, 3, "Building").await?;
    ctx.step("build", work).await?;
    let question = Form::<Approval>::new(format!("The build is ready. Deploy it to {environment}?"));
    let FormAnswer::Accepted(Approval { approve: true }) = ctx.ask("approval", question).await? else {
        return Ok(format!("Nothing was deployed to {environment}: it was not approved."));
    };
    ctx.progress(2, 3, "Deploying").await?;
    ctx.step("deploy", work).await?;
    Ok(format!("Deployed to {environment}."))
}

/// Pretends to work.
async fn work() -> Result<(), Failure> {
    tokio::time::sleep(Duration::from_secs(1)).await;
    Ok(())
}
