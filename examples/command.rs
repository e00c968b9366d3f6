//! A command: runs another program, and ends it with everything that it has started when the task is cancelled.
//!
//! `cargo run --release -p longhaul --features command --example command`

use longhaul::command::Command;
use longhaul::{Ctx, NoArgs, Server, StoreUrl, Tool};

/// A tool that runs `sh -c SCRIPT`. The script comes from the server, not from the caller.
fn script(name: &str, script: &'static str) -> Tool {
    Tool::new(name, move |ctx: Ctx, _: NoArgs| async move {
        Command::new("sh").args(["-c", script]).output(&ctx).await?.text()
    })
    // By default a crash of the server fails the task: a script may do harm if it runs twice. In any case the next server
    // ends what is left of it.
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let disk_use = script("disk_use", "du -sh .").description("How much space the folder of the server takes.");
    let store = "sqlite:commands.db".parse::<StoreUrl>()?.open().await?;
    let server = Server::new("commands").tool(disk_use).start(store).await?;
    Ok(server.listen("127.0.0.1:8377".parse()?).await?.serve_until(tokio::signal::ctrl_c()).await?)
}

#[tokio::test]
async fn a_script_answers_with_what_it_prints() {
    let mut run = longhaul::testing::run(script("hello", "echo hello"), serde_json::json!({})).await;
    assert_eq!(run.result().await.text().unwrap(), "hello\n");
    let mut run = longhaul::testing::run(script("fail", "echo no >&2; exit 3"), serde_json::json!({})).await;
    assert_eq!(run.result().await.error().unwrap(), "The command failed (exit status: 3):\nno");
}

#[tokio::test]
async fn a_cancelled_script_is_ended_with_its_children() {
    use tokio::io::AsyncReadExt as _;

    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let sleeps = format!("sleep 1000 >'{}' & wait", pipe.display());
    let mut run = longhaul::testing::run(script("sleeps", sleeps.leak()), serde_json::json!({})).await;
    run.start().await;
    // This waits until the sleeper has opened the pipe.
    let mut pipe = tokio::fs::File::open(&pipe).await.unwrap();
    run.cancel().await;
    assert!(run.result().await.is_cancelled());
    // The pipe ends when the sleeper, a child of the script, is dead.
    pipe.read_to_end(&mut Vec::new()).await.unwrap();
}
