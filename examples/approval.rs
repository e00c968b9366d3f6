//! Approval: a question to a person, who has a day to answer. It is asked once, and the task waits in the store, not in memory.
//!
//! `cargo run --release -p longhaul --example approval`

use std::time::Duration;

use longhaul::{Ctx, Form, FormAnswer, JsonSchema, NoArgs, OnCrash, Server, StoreUrl, Tool};

const A_DAY: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(serde::Deserialize, JsonSchema)]
struct Approval {
    /// Go ahead?
    approve: bool,
    /// Why not?
    reason: Option<String>,
}

fn deploy() -> Tool {
    Tool::new("deploy", |mut ctx: Ctx, _: NoArgs| async move {
        let question = Form::<Approval>::new("The build is ready. Deploy it?");
        Ok(match ctx.ask_within("approve", question, A_DAY).await? {
            Some(FormAnswer::Accepted(Approval { approve: true, .. })) => "deployed".to_owned(),
            Some(FormAnswer::Accepted(Approval { reason: Some(reason), .. })) => format!("not deployed: {reason}"),
            Some(_) => "not deployed".into(),
            None => "not deployed: no answer within a day".into(),
        })
    })
    .description("Deploys the newest build, if it is approved.")
    .on_crash(OnCrash::Resume)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = "sqlite:deployments.db".parse::<StoreUrl>()?.open().await?;
    let server = Server::new("deployments").tool(deploy()).start(store).await?;
    Ok(server.listen("127.0.0.1:8377".parse()?).await?.serve_until(tokio::signal::ctrl_c()).await?)
}

#[tokio::test]
async fn a_deployment_waits_for_approval_across_a_crash() {
    let mut run = longhaul::testing::run(deploy(), serde_json::json!({})).await;
    assert_eq!(run.question("approve").await["message"], "The build is ready. Deploy it?");
    run.crash().await;
    run.answer("approve", serde_json::json!({ "approve": true })).await;
    assert_eq!(run.result().await.text().unwrap(), "deployed");
}

#[tokio::test]
async fn without_an_answer_nothing_is_deployed() {
    let mut run = longhaul::testing::run(deploy(), serde_json::json!({})).await;
    assert_eq!(run.result().await.text().unwrap(), "not deployed: no answer within a day");

    let mut run = longhaul::testing::run(deploy(), serde_json::json!({})).await;
    run.decline("approve").await;
    assert_eq!(run.result().await.text().unwrap(), "not deployed");
}
