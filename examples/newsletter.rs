//! Everything at once: an approval, a timer and three subtasks, with its test, in under 60 lines.
//!
//! `cargo run --release -p longhaul --example newsletter`

use std::time::Duration;

use longhaul::{Ctx, Form, FormAnswer, JsonSchema, OnCrash, Server, StoreUrl, Subtask, TaskResult, Tool};
use serde_json::json;

#[derive(serde::Deserialize, JsonSchema)]
struct Section {
    topic: String,
}

#[derive(serde::Deserialize, JsonSchema)]
struct Approval {
    send: bool,
}

fn write_section() -> Tool {
    Tool::new("write_section", |_: Ctx, Section { topic }| async move { Ok(format!("All about {topic}.")) })
        .on_crash(OnCrash::Resume)
}

fn newsletter() -> Tool {
    Tool::new("newsletter", |mut ctx: Ctx, Section { topic }| async move {
        let sections = ["news", "people", "events"].map(|part| json!({ "topic": format!("{topic}: {part}") }));
        let written = ctx.subtasks("write", sections.map(|section| Subtask::new("write_section", section))).await?;
        let text = written.iter().map(TaskResult::text).collect::<Result<Vec<_>, _>>()?.join(" ");
        let question = Form::<Approval>::new(format!("Send this? {text}"));
        let FormAnswer::Accepted(Approval { send: true }) = ctx.ask("approve", question).await? else {
            return Ok("It was not sent.".to_owned());
        };
        ctx.sleep("until the readers are awake", Duration::from_secs(8 * 3600)).await?;
        Ok(format!("Sent: {text}"))
    })
    .on_crash(OnCrash::Resume)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = "sqlite:newsletters.db".parse::<StoreUrl>()?.open().await?;
    let server = Server::new("newsletters").tools([newsletter(), write_section()]).start(store).await?;
    Ok(server.listen("127.0.0.1:8377".parse()?).await?.serve_until(tokio::signal::ctrl_c()).await?)
}

#[tokio::test]
async fn a_newsletter_survives_a_crash_anywhere() {
    let mut run = longhaul::testing::run(newsletter(), json!({ "topic": "Otters" })).tool(write_section()).await;
    run.answer("approve", json!({ "send": true })).await;
    let sent = "Sent: All about Otters: news. All about Otters: people. All about Otters: events.";
    assert_eq!(run.result().await.text().unwrap(), sent);
    run.assert_resumable().await;
}
