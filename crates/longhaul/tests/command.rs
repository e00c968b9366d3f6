//! Commands of handlers: output, limits, and that nothing of a process group is left.
#![cfg(feature = "command")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use longhaul::command::{Command, CommandError, OutputStream};
use longhaul::testing::run;
use longhaul::{Ctx, Failure, NoArgs, Tool};
use serde_json::json;
use tokio::io::AsyncReadExt as _;

fn tool<F, Fut>(handler: F) -> Tool
where
    F: Fn(Ctx) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, Failure>> + Send + 'static,
{
    Tool::new("command", move |ctx: Ctx, _: NoArgs| handler(ctx))
}

fn sh(script: &str) -> Command {
    Command::new("sh").args(["-c", script])
}

/// A pipe that ends when the last process that has opened it for writing has ended.
fn fifo(directory: &Path) -> std::path::PathBuf {
    let path = directory.join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    path
}

#[tokio::test]
async fn arguments_environment_directory_and_input_reach_the_program() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap();
    let expected = format!("a b|$(id)|{}|read me\n", path.display());
    let mut run = run(
        tool(move |ctx| {
            let path = path.clone();
            async move {
                let script = r#"read line; printf '%s|%s|%s|%s\n' "$1" "$WORD" "$PWD" "$line""#;
                let command = sh(script).args(["sh", "a b"]).env("WORD", "$(id)").directory(path);
                command.input("read me\n").output(&ctx).await?.text()
            }
        }),
        json!({}),
    )
    .await;
    assert_eq!(run.result().await.text().unwrap(), expected);
}

#[tokio::test]
async fn lines_come_as_they_are_written_and_a_discarded_one_is_not_in_the_output() {
    let handler = |ctx: Ctx| async move {
        let mut running = sh("echo one; echo err >&2; read answer; echo $answer").open_input("").start().await?;
        let mut seen = Vec::new();
        while let Some(line) = running.next_line(&ctx).await? {
            if line.text() == "one" {
                running.discard(&line);
                running.write("two\n")?;
            }
            seen.push((line.stream, line.text()));
        }
        seen.sort_by_key(|(stream, _)| *stream == OutputStream::Stderr);
        let seen: Vec<_> = seen.into_iter().map(|(_, text)| text).collect();
        let output = running.finish(&ctx).await?;
        Ok(format!("{}|{}|{}", seen.join(","), output.stderr.clone(), output.text()?))
    };
    let mut run = run(tool(handler), json!({})).await;
    assert_eq!(run.result().await.text().unwrap(), "one,two,err|err\n|two\n");
}

#[tokio::test]
async fn a_group_that_ignores_sigterm_is_killed_when_its_time_is_over() {
    let directory = tempfile::tempdir().unwrap();
    let fifo = fifo(directory.path());
    let script = format!("trap '' TERM; sleep 1000 >'{}' & echo stuck >&2; wait; sleep 1000", fifo.display());
    let handler = move |ctx: Ctx| {
        let command = sh(&script).time_limit(Duration::from_millis(300)).grace(Duration::from_millis(100));
        async move { command.output(&ctx).await?.text() }
    };
    let mut run = run(tool(handler), json!({})).await;
    run.start().await;
    let mut fifo = tokio::fs::File::open(&fifo).await.unwrap();
    let error = run.result().await.error().unwrap();
    assert_eq!(error, "the command was ended because it ran for longer than 0.3 s:\nstuck");
    fifo.read_to_end(&mut Vec::new()).await.unwrap();
}

#[tokio::test]
async fn what_a_command_leaves_in_the_background_ends_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let fifo = fifo(directory.path());
    let script = format!("sleep 1000 >'{}' & echo done", fifo.display());
    let mut reader = tokio::spawn(async move {
        let mut fifo = tokio::fs::File::open(fifo).await.unwrap();
        fifo.read_to_end(&mut Vec::new()).await.unwrap();
    });
    let handler = move |ctx: Ctx| {
        let command = sh(&script);
        async move { command.output(&ctx).await?.text() }
    };
    let mut run = run(tool(handler), json!({})).await;
    assert_eq!(run.result().await.text().unwrap(), "done\n");
    (&mut reader).await.unwrap();
}

#[tokio::test]
async fn a_command_that_writes_too_much_is_ended() {
    let handler = |ctx: Ctx| async move { sh("yes").output_bytes_max(100_000).output(&ctx).await?.text() };
    let mut run = run(tool(handler), json!({})).await;
    assert!(run.result().await.error().unwrap().contains("more than 100000 bytes"));
}

#[tokio::test]
async fn a_program_that_does_not_exist_is_named() {
    let error = Arc::new(std::sync::Mutex::new(None));
    let kept = Arc::clone(&error);
    let handler = move |_: Ctx| {
        let kept = Arc::clone(&kept);
        async move {
            let failed = Command::new("/no/such/program").start().await.err();
            *kept.lock().unwrap() = failed;
            Ok(String::new())
        }
    };
    run(tool(handler), json!({})).await.result().await;
    let error = error.lock().unwrap().take();
    assert!(matches!(error, Some(CommandError::NotStarted { program, .. }) if program == "/no/such/program"));
}
